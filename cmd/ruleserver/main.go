// Command ruleserver is the reference rule processing server: it applies rules to
// projects' product data, on cores that may be simulated (--cost).
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/internal/ruleserver/registration"
	"example.org/pilotfish/internal/settings"
)

var version = "devel" // the linker sets it when a release is built

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main without the process: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	p := cli.Program{
		Name: "ruleserver",
		Description: "The reference rule processing server. It takes jobs until SIGTERM, then finishes the open ones and ends; " +
			"a second signal ends it at once.",
		Version: cli.Version(version),
	}
	return p.Run(new(flags), args, cli.Console{Out: stdout, Err: stderr})
}

type flags struct {
	Listen string              `default:"127.0.0.1:9001" placeholder:"ADDRESS" help:"Address to take jobs at (${default})."`
	Feeds  string              `required:"" type:"existingdir" placeholder:"DIR" help:"Product data: a file PROJECT.csv for each project, with the names of the columns in the first line."`
	Server ruleserver.Settings `embed:""`
	Grace  time.Duration       `default:"30s" help:"Time that open jobs have to finish after SIGTERM (${default})."`

	Registration registration.Settings `embed:""`
	Preemptible  bool                  `help:"Register as a server that may be stopped at any time, and take notice of the end: POST /v1/preempt, from this machine only."`
	Lifetime     time.Duration         `default:"24h" help:"Longest life of a pre-emptible server (${default})."`
	Notice       time.Duration         `default:"30s" help:"Time from the notice to the end (${default})."`

	LogLevel string `default:"info" enum:"debug,info,warn,error" help:"Least level to log: ${enum} (${default})."`

	Version cli.VersionFlag `help:"Print the version."`
}

// Defaults are the values of ${name} in the tags of settings.
func (f *flags) Defaults() map[string]string {
	s, r := ruleserver.Defaults(), registration.Defaults()
	return map[string]string{
		"cores":       strconv.Itoa(s.Cores),
		"cache_bytes": s.CacheBytes.String(),
		"max_body":    s.MaxBody.String(),
		"max_feed":    s.MaxFeed.String(),
		"max_jobs":    strconv.Itoa(s.MaxJobs),
		"orca":        s.ORCA,

		"service":          r.Service,
		"check_interval":   r.CheckInterval.String(),
		"deregister_after": r.DeregisterAfter.String(),
	}
}

// Validate refuses values that make no sense; kong calls it.
func (f *flags) Validate() error {
	var faults settings.Faults
	f.Server.Check(&faults)
	f.Registration.Check(&faults)
	for _, d := range []struct {
		key   string
		value time.Duration
	}{{"grace", f.Grace}, {"lifetime", f.Lifetime}, {"notice", f.Notice}} {
		if d.value < 0 {
			faults.Add(d.key, "%v is negative", d.value)
		}
	}
	var all []error
	for _, one := range faults.All() {
		all = append(all, fmt.Errorf("--%s: %s", strings.ReplaceAll(one.Key, "_", "-"), one.Text))
	}
	return errors.Join(all...)
}

// Run serves until a signal; kong calls it.
func (f *flags) Run(c cli.Console) error { return serve(f, c.Out, c.Err) }
