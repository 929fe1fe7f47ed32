// Command pilotfish is the sidecar: a submitter posts a job to it, and it
// sends the job to the upstream that will finish it soonest.
package main

import (
	"io"
	"os"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/operator"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is main without the process: it returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	d := config.Default()
	p := cli.Program{
		Name:        "pilotfish",
		Description: "A sidecar proxy for sticky workloads: each job goes to the upstream that will finish it soonest.",
		Version:     cli.Version(version),
		Commands: []cli.Command{
			{Name: "serve", About: "Take jobs and pass them on.", Do: new(serveCommand)},
			{Name: "check", About: "Say what is wrong with a configuration file.", Do: new(checkCommand)},
			{Name: "top", About: "Show how a running sidecar's upstreams serve its jobs.", Do: new(operator.Top)},
			{Name: "explain", About: "Say where a job would go, and why.", Do: new(operator.Explain)},
			{Name: "probe", About: "Ask a sidecar whether it wants jobs: exit code 0 if it does. For images without a shell.", Do: new(operator.Probe)},
			{Name: "reload", About: "Make a running sidecar read its configuration file again.", Do: new(operator.Reload)},
			{Name: "drain", About: "Keep new jobs of a running sidecar away from an upstream.", Do: new(operator.Drain)},
			{Name: "undrain", About: "End a drain.", Do: &operator.Drain{End: true}},
			{Name: "demo", About: "Show what the sidecar does with three jobs, before four rule processing servers.",
				Do: &demoCommand{Listen: d.Listen, Admin: d.Admin}},
		},
	}
	return p.Run(args, cli.Console{In: stdin, Out: stdout, Err: stderr})
}
