// Package config is what an operator can set. Every key has a default, an
// unknown key is an error, and every error names file, line and column.
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

// Config is the whole configuration: the sections of the packages that they set
// up, and those of the program itself.
type Config struct {
	// Listen is where submitters post jobs: host:port, or unix: and the path of a socket,
	// which the process's user and group may use.
	Listen string `yaml:"listen"`
	// Admin is where operators find metrics, health, and what is known of the upstreams:
	// host:port, or unix: and a path. Without AdminTokenFile it asks nobody who they are.
	Admin string `yaml:"admin"`
	// AdminTokenFile holds the token that requests to that port must show, but for
	// /healthz and /readyz: as a bearer token, or as a password. It is read for each
	// request. Empty lets everyone in.
	AdminTokenFile string `yaml:"admin_token_file"`
	// AdminWrite lets anyone who reaches that port drain an upstream by hand and have
	// this file read again.
	AdminWrite bool `yaml:"admin_write"`
	// Hosts are names that a request's Host header may have besides those of this
	// machine. "*" allows every name, and web pages with it.
	Hosts []string `yaml:"hosts"`
	// ReusePort lets another process of the same user open the ports too, so that it can
	// take over from this one. Leave it off otherwise: a second process that was started by
	// mistake would take a share of the jobs.
	ReusePort bool `yaml:"-"`

	// Watch is how often this file is looked at. It is read again when it has changed and
	// two looks agree. 0 never looks; SIGHUP and "pilotfish reload" work all the same.
	Watch time.Duration `yaml:"watch"`

	// Submitters bounds what all who post jobs may take together.
	Submitters proxy.ServerSettings `yaml:"submitters"`
	// Discovery says where the upstreams come from.
	Discovery discovery.Settings `yaml:"discovery"`
	// UpstreamTLS is how to reach upstreams by TLS: for jobs and for reports.
	// The files are read again when they change. An empty section, {}, trusts the system's
	// certificates; without the section, upstreams are reached without TLS.
	UpstreamTLS *settings.TLS `yaml:"upstream_tls"`
	// Reports says how upstreams are asked about their load and their caches. The text
	// none in the place of the section asks nobody, for servers that report nothing.
	Reports report.Settings `yaml:"reports"`
	// Job says where a job's members are in a request, and how large a body may be. A
	// place is a JSON Pointer into the body such as /project_id, or a section with one
	// of the keys pointer, header and path.
	Job intake.Settings `yaml:"job"`
	// Selection names the policy that picks an upstream for each job.
	Selection Selection `yaml:"selection"`
	// Overload names the policy that says what an upstream may still take.
	Overload overload.Settings `yaml:"overload"`
	// Breaker keeps jobs from an upstream that fails again and again.
	Breaker health.Settings `yaml:"breaker"`
	// Retry bounds the attempts of a job.
	Retry dispatch.RetrySettings `yaml:"retry"`
	// Queue bounds the jobs that wait in the sidecar for an eligible upstream.
	Queue dispatch.QueueSettings `yaml:"queue"`
	// Projects bounds what one project takes of this sidecar.
	Projects dispatch.ProjectSettings `yaml:"projects"`
	// Mesh lets Envoy ask for an upstream instead of sending jobs through pilotfish
	// (docs/mesh.md).
	Mesh mesh.Settings `yaml:"mesh"`
	// Quality says how submitters are to be served (docs/operate.md).
	Quality quality.Settings `yaml:"quality"`
	// Metrics says how many series the metrics have.
	Metrics metrics.Settings `yaml:"metrics"`
	// Tracing sends spans of jobs and attempts to a collector of OpenTelemetry.
	Tracing tracing.Settings `yaml:"tracing"`
	// Stream bounds the responses.
	Stream proxy.Settings `yaml:"stream"`
	// Shutdown bounds the end of the process.
	Shutdown Shutdown `yaml:"shutdown"`
	// Log says what is logged.
	Log logging.Settings `yaml:"log"`
}

// Selection is the section "selection".
type Selection struct {
	// Policy is one of docs/policies.md.
	Policy string `yaml:"policy"`
	// Shadow is a second policy, which chooses nothing: metrics and log say where it would
	// have sent each job. Empty asks none.
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

// Default is the configuration of an empty file.
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

// Flag is a setting of the command line. It is laid over the file's before the
// check, so that what it replaces need not be right in the file.
type Flag struct {
	Name  string // --listen
	Key   string // what it sets: listen
	Given bool   // the command line has it
	Set   func(*Config)
}

// Load reads a configuration file over the defaults, lays flags over it, and
// checks the result. It returns all faults and warnings in the file's order.
func Load(path string, flags ...Flag) (Config, []*cli.Error, error) {
	d, err := cli.Open(path)
	if err != nil {
		return Config{}, nil, err
	}
	return Parse(d, flags...)
}

// Parse is Load of a document that was read; the zero Document has no key.
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
