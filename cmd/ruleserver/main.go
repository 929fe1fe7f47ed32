// Command ruleserver is the reference rule processing server: it applies rules to
// projects' product data, on cores that may be simulated (--cost).
package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/internal/settings"
)

var version = "devel" // the linker sets it when a release is built

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main without the process: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	p := cli.Program{
		Name: "ruleserver",
		Description: "The reference rule processing server. On SIGTERM it finishes the open jobs and exits; " +
			"a second signal ends it immediately.",
		Version: cli.Version(version),
		Do:      &flags{Server: ruleserver.Defaults()},
	}
	return p.Run(args, cli.Console{Out: stdout, Err: stderr})
}

type flags struct {
	Listen string              `default:"127.0.0.1:9001" placeholder:"ADDRESS" help:"Address for jobs."`
	Feeds  string              `required:"" type:"existingdir" placeholder:"DIR" help:"Folder of product data: a file PROJECT.csv for each project, with the column names in the first line."`
	Server ruleserver.Settings `embed:""`
	Consul consulFlags         `embed:""`
	Grace  time.Duration       `default:"30s" help:"Maximum time to wait for open jobs after SIGTERM."`

	LogLevel slog.Level `default:"info" placeholder:"LEVEL" help:"Minimum level to log: debug, info, warn or error."`
}

// Validate returns an error for invalid values.
func (f *flags) Validate() error {
	var faults settings.Faults
	f.Server.Check(&faults)
	faults.NotNegative("grace", f.Grace)
	faults.NotNegative("lifetime", f.Consul.Lifetime)
	faults.AtLeast("overloaded", int64(f.Consul.Overloaded), 0)
	var all []error
	for _, one := range faults.All() {
		all = append(all, fmt.Errorf("--%s: %s", strings.ReplaceAll(one.Key, "_", "-"), one.Text))
	}
	return errors.Join(all...)
}

// Run serves until a signal.
func (f *flags) Run(c cli.Console) error { return serve(f, c.Out, c.Err) }
