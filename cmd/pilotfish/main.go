// Command pilotfish is the sidecar: a submitter posts a job to it, and it
// sends the job to the upstream that is expected to finish it first.
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
	Serve   serveCommand     `cmd:"" help:"Run the sidecar."`
	Check   checkCommand     `cmd:"" help:"Check a configuration file."`
	Top     operator.Top     `cmd:"" help:"Show a running sidecar's upstreams and quality of service."`
	Explain operator.Explain `cmd:"" help:"Show where a job would go, and why."`
	Probe   operator.Probe   `cmd:"" help:"Check whether a sidecar is ready: exit code 0 if it is. For images without a shell."`
	Reload  operator.Reload  `cmd:"" help:"Reload a running sidecar's configuration file."`
	Drain   operator.Drain   `cmd:"" help:"Keep a running sidecar's new jobs away from an upstream."`
	Undrain operator.Drain   `cmd:"" help:"End a drain."`
	Demo    demoCommand      `cmd:"" help:"Show how the sidecar places three jobs on four rule processing servers."`
}

// run is main without the process: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	d := config.Default()
	p := cli.Program{
		Name:        "pilotfish",
		Description: "A sidecar proxy for sticky workloads: each job goes to the upstream that is expected to finish it first.",
		Version:     cli.Version(version),
		Do:          &commands{Undrain: operator.Drain{End: true}, Demo: demoCommand{Listen: d.Listen, Admin: d.Admin}},
	}
	return p.Run(args, cli.Console{Out: stdout, Err: stderr})
}
