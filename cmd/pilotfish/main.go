// Command pilotfish is the sidecar: a submitter posts a job to it, and it
// sends the job to the upstream that will finish it soonest.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/alecthomas/kong"
)

// version is set by the linker when a release is built.
var version = "devel"

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// The exit codes: a fault found while running, and a command line that makes no sense.
const (
	exitFault = 1
	exitUsage = 2
)

type commands struct {
	Serve   serveCommand   `cmd:"" help:"Take jobs and pass them on."`
	Check   checkCommand   `cmd:"" help:"Say what is wrong with a configuration file."`
	Demo    demoCommand    `cmd:"" help:"Start four rule processing servers and the sidecar, and run a job."`
	Version versionCommand `cmd:"" help:"Print the version."`
}

// streams are where commands write.
type streams struct{ out, err io.Writer }

// run is main without the process: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	var c commands
	exited := -1
	parser, err := kong.New(&c,
		kong.Name("pilotfish"),
		kong.Description("A sidecar proxy for sticky workloads: each job goes to the upstream that will finish it soonest."),
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
		fmt.Fprintf(stderr, "pilotfish: %v\n", err)
		return exitUsage
	}
	err = k.Run(streams{stdout, stderr})
	if err == nil {
		return 0
	}
	if !errors.Is(err, errReported) {
		fmt.Fprintf(stderr, "pilotfish: %v\n", err)
	}
	return exitFault
}

// errReported is a fault that the command has told about itself.
var errReported = errors.New("reported")

type versionCommand struct{}

func (versionCommand) Run(s streams) error {
	_, err := fmt.Fprintf(s.out, "pilotfish %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
