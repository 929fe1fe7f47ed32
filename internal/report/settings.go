package report

import (
	"net/url"
	"strings"
	"time"

	"example.org/pilotfish/internal/report/events"
	"example.org/pilotfish/internal/settings"
)

// Limits of the interval. A report that is an hour old is useless.
const (
	shortest = time.Millisecond
	longest  = time.Hour
)

// none is the text that turns reports, the cache listing or a metric off.
const none = "none"

// Settings is the section "reports" of a configuration file.
type Settings struct {
	// Instead is the text that the file has instead of the section. The only valid one is
	// "none", which turns polls off.
	Instead string `yaml:"-"`

	// Interval is the mean time between the starts of two polls of one upstream,
	// or of the Prometheus server. Each interval is up to 20 % shorter or longer.
	// A poll times out after 2 s, or after 1 s if the poll before failed. An upstream that responds but has never reported is polled once a minute.
	Interval time.Duration `yaml:"interval"`
	// Timeout is the timeout of a poll, to the last byte of the response. No file sets it.
	Timeout time.Duration `yaml:"-"`
	// MetricsPath is the path of an upstream's metrics. It can have a query.
	MetricsPath string `yaml:"metrics_path"`
	// HealthCheckPath is requested of each upstream instead of metrics and cache listing, for servers that report
	// nothing. Two failed checks in a row (no response in time, or a status of 500 or more) open the upstream's
	// breaker until a check passes. If both had no response, the jobs that wait there are moved. Empty requests
	// reports.
	HealthCheckPath string `yaml:"health_check_path"`
	// CachePath is the path of an upstream's cache listing. It can have a query.
	// "none" means that upstreams have no listing: pilotfish then assumes that a project's
	// data is cached where its jobs were sent.
	CachePath string `yaml:"cache_path"`
	// Probe is the path at which an upstream reports its load before a job is sent there, in the header of the response, like
	// X-Load in a response to a job. It can have a query. The three cheapest upstreams are probed at the same time. The job
	// waits for them for 1 % of the service time at most, and no longer than 20 ms; jobs of less than 100 ms are sent without
	// probes. After three failed probes in a row, an upstream is not probed for a minute. "none" probes no upstream.
	Probe string `yaml:"probe"`
	// Names are the metrics of an upstream that make up a report. A metric is
	// summed over its labels, except that the label "priority" separates high from
	// low. Values without that label count as low. A name can be followed by labels that
	// samples must have, and by a scale: jobs{kind="a"} * 0.001. The scale of a
	// histogram or summary applies to its sum. "none" means no metric.
	Names Names `yaml:"names"`
	// AskORCA adds a header to each job that requests a load report in the text form of ORCA.
	// Load reports in responses are read even without it.
	AskORCA bool `yaml:"orca"`
	// Prometheus is the http or https URL of a Prometheus server that scrapes the upstreams. Once
	// every interval it is queried for the load of all upstreams; each upstream is polled for its
	// cache listing only, once every six intervals. The label "instance" must be an upstream's
	// address. Empty polls each upstream for its load.
	Prometheus string `yaml:"prometheus"`
	// Events are the events of KV caches. With them, prompts go to an upstream that has their prefix cached whichever
	// sidecar sent it there. They are read from each upstream, also with Prometheus.
	Events events.Settings `yaml:"events"`
}

// Default returns the default settings.
func Default() Settings {
	return Settings{
		Interval:    5 * time.Second,
		Timeout:     2 * time.Second,
		MetricsPath: "/metrics",
		CachePath:   "/v1/cache/projects",
		Probe:       "/v1/load",
		Names:       defaultNames(),
	}
}

// UnmarshalYAML reads a section over the defaults, or the text instead of it.
func (s *Settings) UnmarshalYAML(decode func(any) error) error {
	type section Settings
	*s = Default()
	if decode(&s.Instead) == nil {
		return nil
	}
	return decode((*section)(s))
}

// MarshalYAML writes what UnmarshalYAML reads.
func (s Settings) MarshalYAML() (any, error) {
	if s.Instead != "" {
		return s.Instead, nil
	}
	type section Settings
	return section(s), nil
}

// Probes reports whether upstreams are probed: only if they are polled for reports.
func (s Settings) Probes() bool {
	return s.Probe != none && s.Instead != none && s.HealthCheckPath == "" && s.Prometheus == ""
}

// cacheInterval is the mean time between two requests for an upstream's cache listing if
// Prometheus reports the load.
func (s Settings) cacheInterval() time.Duration { return min(6*s.Interval, longest) }

// Check adds invalid values to f.
func (s Settings) Check(f *settings.Faults) {
	if s.Instead != "" && s.Instead != none {
		f.Add("", "%q is neither a section nor none, which turns polls off", s.Instead)
	}
	if s.Interval < shortest || s.Interval > longest {
		f.Add("interval", "%v is not between %v and %v", s.Interval, shortest, longest)
	}
	checkPath(f, "metrics_path", s.MetricsPath)
	if s.CachePath != none {
		checkPath(f, "cache_path", s.CachePath)
	}
	if s.Probe != none {
		checkPath(f, "probe", s.Probe)
	}
	if s.HealthCheckPath != "" {
		checkPath(f, "health_check_path", s.HealthCheckPath)
		if s.Prometheus != "" {
			f.Add("health_check_path", "health checks replace reports, and prometheus is a source of reports")
		}
	}
	s.Names.read(f.In("names"))
	s.Events.Check(f.In("events"))
	if s.Prometheus != "" {
		f.URL("prometheus", s.Prometheus)
		if strings.ContainsAny(s.Prometheus, "?#") {
			f.Add("prometheus", "it has a query or a fragment, and pilotfish adds its own query")
		}
	}
}

func checkPath(f *settings.Faults, key, path string) {
	if !strings.HasPrefix(path, "/") {
		f.Add(key, "%q must begin with /", path)
	} else if u, err := url.Parse(path); err != nil || u.Host != "" || u.Fragment != "" {
		f.Add(key, "%q is not a path such as /metrics", path)
	}
}
