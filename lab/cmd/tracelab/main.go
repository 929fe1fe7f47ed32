// Command tracelab simulates sidecars, and compares the policies.
package main

import (
	"io"
	"os"

	"example.org/pilotfish/internal/cli"
)

var version = "devel" // the linker sets it when a release is built

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main without the process: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	p := cli.Program{
		Name:        "tracelab",
		Description: "Compares policies in simulated time.",
		Version:     cli.Version(version),
		Commands: []cli.Command{
			{Name: "simulate", About: "Play a scenario's runs in simulated time and compare them.", Do: new(simulateCommand)},
			{Name: "judge", About: "Compare the policy with tuned rivals on settings that its sources draw.", Do: new(judgeCommand)},
			{Name: "prompts", About: "Compare routers of prompts to language models, on a trace of requests.", Do: new(promptsCommand)},
			{Name: "whatif", About: "Say from access logs what pilotfish would do for these jobs: hits, waits, upstreams needed.",
				Do: new(whatifCommand)},
		},
	}
	return p.Run(args, cli.Console{Out: stdout, Err: stderr})
}
