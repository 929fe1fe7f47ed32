// Command tracelab invents traces, simulates sidecars on them, and compares
// the policies.
package main

import (
	"io"
	"os"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/lab/replay"
	"example.org/pilotfish/internal/lab/sim"
	"example.org/pilotfish/internal/quality"
)

var version = "devel" // the linker sets it when a release is built

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main without the process: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	p := cli.Program{
		Name:        "tracelab",
		Description: "Measures policies on traces: generates, simulates and reports.",
		Version:     cli.Version(version),
		Commands: []cli.Command{
			{Name: "generate", About: "Write a trace: the jobs of an invented day.", Do: new(generateCommand)},
			{Name: "simulate", About: "Play a scenario's runs in simulated time and compare them.", Do: new(simulateCommand)},
			{Name: "judge", About: "Compare a policy with the best of its rivals on workloads and fleets on which it was not tuned.",
				Do: new(judgeCommand)},
			{Name: "report", About: "Show results that simulate has saved.", Do: new(reportCommand)},
			{Name: "capacity", About: "Say how many upstreams the jobs of a trace need.",
				Do: &capacityCommand{Cores: sim.DefaultFleet().Cores, FirstByte: quality.Default().FirstByte}},
			{Name: "replay", About: "Send a trace's jobs to real sidecars, and measure what their submitters see.",
				Do: &replayCommand{Settings: replay.Defaults()}},
		},
	}
	return p.Run(args, cli.Console{Out: stdout, Err: stderr})
}
