// Command tracelab invents traces, simulates sidecars on them, and compares
// the policies.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// The exit codes: a fault found while running, a command line that makes no
// sense, and an end by Ctrl-C.
const (
	exitFault       = 1
	exitUsage       = 2
	exitInterrupted = 130
)

type commands struct {
	Generate generateCommand `cmd:"" help:"Write a trace: the jobs of an invented day."`
	Simulate simulateCommand `cmd:"" help:"Play a scenario's runs in simulated time and compare them."`
	Report   reportCommand   `cmd:"" help:"Show results that simulate has saved."`
	Replay   replayCommand   `cmd:"" help:"Send a trace's jobs to real sidecars, and measure what their submitters see."`
}

// streams are where commands write.
type streams struct{ out, err io.Writer }

// run is main without the process: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	var c commands
	exited := -1
	parser, err := kong.New(&c,
		kong.Name("tracelab"),
		kong.Description("Measures policies on traces: generates, simulates and reports."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exited = code }),
		kong.UsageOnError(),
	)
	if err != nil {
		panic("BUG: the command line is declared wrong: " + err.Error())
	}
	k, err := parser.Parse(args)
	if exited >= 0 {
		return exited // --help
	}
	if err != nil {
		fmt.Fprintf(stderr, "tracelab: %v\n", err)
		return exitUsage
	}
	err = k.Run(streams{stdout, stderr})
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errInterrupted):
		fmt.Fprintf(stderr, "tracelab: %v\n", err)
		return exitInterrupted
	}
	fmt.Fprintf(stderr, "tracelab: %v\n", err)
	return exitFault
}

// errInterrupted is an end before the end, by Ctrl-C or SIGTERM.
var errInterrupted = errors.New("interrupted")
