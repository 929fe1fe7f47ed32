// Package config reads and validates the configuration file. Every key has a default,
// an unknown key is an error, and every error states file, line and column.
package config

import (
	"maps"
	"slices"
	"time"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/discovery"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/logging"
	"example.org/pilotfish/internal/mesh"
	"example.org/pilotfish/internal/metrics"
	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/internal/report"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/internal/tracing"
)

// Config is the whole configuration: the settings of the packages, and those of the program
// itself.
type Config struct {
	// Listen is the address for jobs: host:port, or unix: and the path of a socket,
	// which the process's user and group can use.
	Listen string `yaml:"listen"`
	// Admin is the address of the admin port, with metrics, health and the state of the upstreams:
	// host:port, or unix: and a path. Without AdminTokenFile it needs no authentication.
	Admin string `yaml:"admin"`
	// AdminTokenFile is a file with the token that requests to the admin port need, as a bearer token
	// or as a password. /healthz and /readyz need none. The file is read for each
	// request. Empty disables authentication.
	AdminTokenFile string `yaml:"admin_token_file"`
	// AdminWrite allows anyone who can access the admin port to drain an upstream by hand and to
	// reload this file.
	AdminWrite bool `yaml:"admin_write"`
	// Hosts are accepted values of the Host header besides the names of this
	// machine. "*" accepts every name, and requests that web pages send.
	Hosts []string `yaml:"hosts"`
	// ReusePort allows another process of the same user to open the same ports, so that it can
	// take over from this one. Leave it off otherwise: a second process that was started by
	// mistake would get a share of the jobs.
	ReusePort bool `yaml:"-"`

	// Watch is how often this file is checked for changes. It is reloaded after a change, once two
	// checks have found the same content. 0 disables this; SIGHUP and "pilotfish reload" always work.
	Watch time.Duration `yaml:"watch"`

	// Submitters limits the resources of all submitters together.
	Submitters proxy.ServerSettings `yaml:"submitters"`
	// Discovery is the source of the upstreams.
	Discovery discovery.Settings `yaml:"discovery"`
	// UpstreamTLS enables TLS to upstreams, for jobs and for reports.
	// The files are read again when they change. An empty section, {}, trusts the system's
	// certificates. Without the section, connections to upstreams do not use TLS.
	UpstreamTLS *settings.TLS `yaml:"upstream_tls"`
	// Reports configures how upstreams are polled for their load and their caches. Instead of a section,
	// the text none disables polling, for servers that report nothing.
	Reports report.Settings `yaml:"reports"`
	// Job configures where a job's members are in a request, and the maximum size of a body. A
	// place is a JSON Pointer into the body such as /project_id, or a section with one
	// of the keys pointer, header and path.
	Job intake.Settings `yaml:"job"`
	// Selection is the policy that picks an upstream for each job.
	Selection Selection `yaml:"selection"`
	// Overload is the policy that limits the jobs for an overloaded upstream.
	Overload overload.Settings `yaml:"overload"`
	// Breaker keeps jobs away from an upstream that fails repeatedly.
	Breaker health.Settings `yaml:"breaker"`
	// Retry bounds the attempts of a job.
	Retry dispatch.RetrySettings `yaml:"retry"`
	// Queue bounds the jobs that wait in the sidecar for an eligible upstream.
	Queue dispatch.QueueSettings `yaml:"queue"`
	// Projects limits the jobs of one project.
	Projects dispatch.ProjectSettings `yaml:"projects"`
	// Mesh is the port for Envoy, which gets an upstream for each job instead of sending the job
	// through pilotfish (docs/mesh.md).
	Mesh mesh.Settings `yaml:"mesh"`
	// Quality configures what counts as failed, and the fleet's goals (docs/operate.md).
	Quality quality.Settings `yaml:"quality"`
	// Metrics limits the number of metric series.
	Metrics metrics.Settings `yaml:"metrics"`
	// Tracing sends spans of jobs and attempts to an OpenTelemetry collector.
	Tracing tracing.Settings `yaml:"tracing"`
	// Stream configures responses.
	Stream proxy.Settings `yaml:"stream"`
	// Shutdown configures the end of the process.
	Shutdown Shutdown `yaml:"shutdown"`
	// Log configures the log.
	Log logging.Settings `yaml:"log"`
}

// Selection is the section "selection".
type Selection struct {
	// Policy is the name of a policy in docs/policies.md.
	Policy string `yaml:"policy"`
	// Shadow is a second policy for comparison: metrics and log state where it would
	// have sent each job. Empty is none.
	Shadow string `yaml:"shadow"`
	// Heavy says which jobs are heavy. They go to upstreams that discovery marks with for=heavy, or to others while none of
	// those is eligible. Other jobs never go there, unless every upstream is marked.
	Heavy pool.HeavySettings `yaml:"heavy"`
}

// Shutdown is the section "shutdown".
type Shutdown struct {
	// Grace is the time that open jobs have to finish after SIGTERM.
	Grace time.Duration `yaml:"grace"`
}

// Default returns the configuration of an empty file.
func Default() Config {
	return Config{
		Listen:     "127.0.0.1:8080",
		Admin:      "127.0.0.1:9180",
		Submitters: proxy.DefaultServer(),
		Discovery:  discovery.Default(),
		Reports:    report.Default(),
		Job:        intake.Default(),
		Selection:  Selection{Policy: "expected"},
		Overload:   overload.Default(),
		Breaker:    health.Default(),
		Retry:      dispatch.DefaultRetry(),
		Queue:      dispatch.DefaultQueue(),

		Metrics:  metrics.Default(),
		Tracing:  tracing.Default(),
		Quality:  quality.Default(),
		Stream:   proxy.Default(),
		Shutdown: Shutdown{Grace: 2 * time.Minute},
		Log:      logging.Default(),
	}
}

// Flag is a setting on the command line. It overrides the file's before the
// check, so that an overridden value in the file need not be valid.
type Flag struct {
	Name  string // --listen
	Key   string // what it sets: listen
	Given bool   // the command line has it
	Set   func(*Config)
}

// Load reads a configuration file over the defaults, applies flags, and
// checks the result. It returns all faults and warnings in the file's order.
func Load(path string, flags ...Flag) (Config, []*cli.Error, error) {
	d, err := cli.Open(path)
	if err != nil {
		return Config{}, nil, err
	}
	return Parse(d, flags...)
}

// Parse is Load for a parsed document; the zero Document has no key.
func Parse(d cli.Document, flags ...Flag) (Config, []*cli.Error, error) {
	c := Default()
	d.Flags = map[string]string{}
	set := func(f *settings.Faults) {
		for _, flag := range flags {
			if flag.Given {
				flag.Set(&c)
				d.Flags[flag.Key] = flag.Name
			}
		}
		c.Check(f)
	}
	var old []*cli.Error
	names := renamed()
	for _, from := range slices.Sorted(maps.Keys(names)) {
		if warning := d.Rename(from, names[from]); warning != nil {
			old = append(old, warning)
		}
	}
	warnings, err := d.Decode(&c, set)
	return c, append(old, warnings...), err
}
