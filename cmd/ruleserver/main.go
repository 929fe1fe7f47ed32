// Command ruleserver is the reference rule processing server: it applies rules
// to projects' product data, on cores that may be virtual.
package main

import (
	"io"
	"os"

	"example.org/pilotfish/internal/cli"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main without the process: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	return cli.Run("ruleserver", "The reference rule processing server. It serves jobs until SIGTERM, and then finishes those that it has; "+
		"a second signal ends it at once.",
		new(flags), args, cli.Console{Out: stdout, Err: stderr})
}

// Run serves until a signal; kong calls it.
func (f flags) Run(c cli.Console) error { return serve(f, c.Out, c.Err) }
