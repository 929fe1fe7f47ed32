// Command ruleserver is the reference rule processing server: it applies rules
// to projects' product data, on cores that may be virtual.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// The exit codes: a fault found while running, jobs that had to be cut included,
// and a command line that makes no sense.
const (
	exitFault = 1
	exitUsage = 2
)

// run is main without the process: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	var f flags
	exited := -1
	parser, err := kong.New(&f,
		kong.Name("ruleserver"),
		kong.Description("The reference rule processing server. It serves jobs until SIGTERM, and then finishes those that it has; "+
			"a second signal ends it at once."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exited = code }),
	)
	if err != nil {
		panic("BUG: the command line is declared wrong: " + err.Error())
	}
	_, err = parser.Parse(args)
	if exited >= 0 {
		return exited // --help
	}
	if err != nil {
		fmt.Fprintf(stderr, "ruleserver: %v\n", err)
		return exitUsage
	}
	if err := serve(f, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "ruleserver: %v\n", err)
		return exitFault
	}
	return 0
}
