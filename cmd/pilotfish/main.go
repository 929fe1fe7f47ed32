// Command pilotfish is the sidecar: a submitter posts a job to it, and it
// sends the job to the upstream that will finish it soonest.
package main

import (
	"io"
	"os"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/config"
	_ "example.org/pilotfish/internal/logging/early" // first of all packages that log
	"example.org/pilotfish/internal/operator"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

type commands struct {
	Serve   serveCommand     `cmd:"" help:"Take jobs and pass them on."`
	Check   checkCommand     `cmd:"" help:"Say what is wrong with a configuration file."`
	Top     operator.Top     `cmd:"" help:"Show how a running sidecar's upstreams serve its jobs."`
	Explain operator.Explain `cmd:"" help:"Say where a job would go, and why."`
	Probe   operator.Probe   `cmd:"" help:"Ask a sidecar whether it wants jobs: exit code 0 if it does. For images without a shell."`
	Reload  operator.Reload  `cmd:"" help:"Make a running sidecar read its configuration file again."`
	Drain   operator.Drain   `cmd:"" help:"Keep new jobs of a running sidecar away from an upstream."`
	Undrain operator.Drain   `cmd:"" help:"End a drain."`
	Demo    demoCommand      `cmd:"" help:"Show what the sidecar does with three jobs, before four rule processing servers."`
}

// run is main without the process: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	d := config.Default()
	p := cli.Program{
		Name:        "pilotfish",
		Description: "A sidecar proxy for sticky workloads: each job goes to the upstream that will finish it soonest.",
		Version:     cli.Version(version),
		Do:          &commands{Undrain: operator.Drain{End: true}, Demo: demoCommand{Listen: d.Listen, Admin: d.Admin}},
	}
	return p.Run(args, cli.Console{Out: stdout, Err: stderr})
}
