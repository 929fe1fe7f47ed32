// Command pilotfish is the sidecar: a submitter posts a job to it, and it
// sends the job to the upstream that will finish it soonest.
package main

import (
	"fmt"
	"io"
	"os"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/operator"
)

// version is set by the linker when a release is built.
var version = "devel"

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

type commands struct {
	Serve   serveCommand     `cmd:"" help:"Take jobs and pass them on."`
	Check   checkCommand     `cmd:"" help:"Say what is wrong with a configuration file."`
	Top     operator.Top     `cmd:"" help:"Show how a running sidecar's upstreams serve its jobs."`
	Explain operator.Explain `cmd:"" help:"Say where a job would go, and why."`
	Probe   operator.Probe   `cmd:"" help:"Ask a sidecar whether it wants jobs: exit code 0 if it does. For images without a shell."`
	Reload  operator.Reload  `cmd:"" help:"Make a running sidecar read its configuration file again."`
	Demo    demoCommand      `cmd:"" help:"Show what the sidecar does with three jobs, before four rule processing servers."`
	Version versionCommand   `cmd:"" help:"Print the version."`

	ShowVersion cli.VersionFlag `name:"version" help:"Print the version."`
}

// Defaults are the values of ${name} in the tags of the commands.
func (*commands) Defaults() map[string]string {
	c := config.Default()
	return map[string]string{"listen": c.Listen, "admin": c.Admin}
}

// run is main without the process: it returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := cli.Program{
		Name:        "pilotfish",
		Description: "A sidecar proxy for sticky workloads: each job goes to the upstream that will finish it soonest.",
		Version:     cli.Version(version),
	}
	return p.Run(new(commands), args, cli.Console{In: stdin, Out: stdout, Err: stderr})
}

type versionCommand struct{}

func (versionCommand) Run(s cli.Console) error {
	_, err := fmt.Fprintf(s.Out, "pilotfish %s\n", cli.Version(version))
	return err
}
