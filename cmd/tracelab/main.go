// Command tracelab invents traces, simulates sidecars on them, and compares
// the policies.
package main

import (
	"io"
	"os"

	"example.org/pilotfish/internal/cli"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

type commands struct {
	Generate generateCommand `cmd:"" help:"Write a trace: the jobs of an invented day."`
	Simulate simulateCommand `cmd:"" help:"Play a scenario's runs in simulated time and compare them."`
	Report   reportCommand   `cmd:"" help:"Show results that simulate has saved."`
	Replay   replayCommand   `cmd:"" help:"Send a trace's jobs to real sidecars, and measure what their submitters see."`

	Version cli.VersionFlag `help:"Print the version."`
}

// run is main without the process: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	p := cli.Program{Name: "tracelab", Description: "Measures policies on traces: generates, simulates and reports.", Version: cli.Version("devel")}
	return p.Run(new(commands), args, cli.Console{Out: stdout, Err: stderr})
}
