// Command tracelab invents traces, simulates sidecars on them, and compares
// the policies.
package main

import (
	"fmt"
	"io"
	"os"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/lab/replay"
	"example.org/pilotfish/internal/lab/sim"
	"example.org/pilotfish/internal/lab/workload"
	"example.org/pilotfish/internal/quality"
)

var version = "devel" // the linker sets it when a release is built

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

type commands struct {
	Generate generateCommand `cmd:"" help:"Write a trace: the jobs of an invented day."`
	Simulate simulateCommand `cmd:"" help:"Play a scenario's runs in simulated time and compare them."`
	Judge    judgeCommand    `cmd:"" help:"Compare a policy with the best of its rivals on workloads and fleets on which it was not tuned."`
	Report   reportCommand   `cmd:"" help:"Show results that simulate has saved."`
	Capacity capacityCommand `cmd:"" help:"Say how many upstreams the jobs of a trace need."`
	Replay   replayCommand   `cmd:"" help:"Send a trace's jobs to real sidecars, and measure what their submitters see."`

	Version cli.VersionFlag `help:"Print the version."`
}

// Defaults are the values of ${name} in the flags' tags.
func (*commands) Defaults() map[string]string {
	w, r := workload.Default(), replay.Defaults()
	return map[string]string{
		"jobs": fmt.Sprint(w.Jobs), "duration": fmt.Sprint(w.Duration), "submitters": fmt.Sprint(w.Submitters), "high_share": fmt.Sprint(w.HighShare),
		"first_byte": quality.Default().FirstByte.String(), "cores": fmt.Sprint(sim.DefaultFleet().Cores),
		"speed": fmt.Sprint(r.Speed), "replay_jobs": fmt.Sprint(r.Jobs), "within": r.Within.String(),
	}
}

// run is main without the process: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	p := cli.Program{Name: "tracelab", Description: "Measures policies on traces: generates, simulates and reports.", Version: cli.Version(version)}
	return p.Run(new(commands), args, cli.Console{Out: stdout, Err: stderr})
}
