package report

import (
	"net/url"
	"strings"
	"time"

	"example.org/pilotfish/internal/settings"
)

// Bounds of the interval. A report that is an hour old helps nobody.
const (
	shortest = time.Millisecond
	longest  = time.Hour
)

// none is the text for what there is not: reports, a cache listing, a metric.
const none = "none"

// Settings is the section "reports" of a configuration file.
type Settings struct {
	// Instead is a text that the file has in the place of the section. "none", the only
	// one, asks nobody.
	Instead string `yaml:"-"`

	// Interval is the mean time between the starts of two polls of one upstream,
	// or of the Prometheus server. Each interval is up to 20 % shorter or longer.
	// A response may take 2 s. One that answers and has never reported is polled once a minute.
	Interval time.Duration `yaml:"interval"`
	// Timeout is the longest that a response may take, to its last byte. No file sets it.
	Timeout time.Duration `yaml:"-"`
	// MetricsPath is where an upstream serves its metrics. It may have a query.
	MetricsPath string `yaml:"metrics_path"`
	// HealthCheckPath is requested of each upstream instead of metrics and cache listing, for servers that report
	// nothing. Two failed checks in a row (no response in time, or a status of 500 or more) open the upstream's
	// breaker until a check passes. Empty requests reports.
	HealthCheckPath string `yaml:"health_check_path"`
	// CachePath is where an upstream serves its cache listing. It may have a query.
	// "none" asks for none: then pilotfish assumes that a project's data is where its
	// jobs went.
	CachePath string `yaml:"cache_path"`
	// Names are the metrics of an upstream that make up a report. A metric is
	// summed over its labels, except that the label "priority" separates high from
	// low. Values without that label are low. A name may be followed by labels that
	// samples must have, and by a scale: jobs{kind="a"} * 0.001. The scale of a
	// histogram or summary is for its sum. "none" is no metric.
	Names Names `yaml:"names"`
	// AskORCA asks with each job for a load report in the text form of ORCA. Reports that
	// come unasked are read in any case.
	AskORCA bool `yaml:"orca"`
	// Prometheus is the URL of a server that scrapes the upstreams, by http or https. It
	// is asked for the load of all of them, every interval; an upstream is asked for its
	// cache listing only, every six. Its label "instance" must be an upstream's address.
	// Empty asks each upstream.
	Prometheus string `yaml:"prometheus"`
}

// Default is what a file that says nothing means.
func Default() Settings {
	return Settings{
		Interval:    5 * time.Second,
		Timeout:     2 * time.Second,
		MetricsPath: "/metrics",
		CachePath:   "/v1/cache/projects",
		Names:       defaultNames(),
	}
}

// UnmarshalYAML reads a section over the defaults, or the text in its place.
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

// cacheInterval is the mean time between two requests for the listing of one upstream
// whose load Prometheus tells.
func (s Settings) cacheInterval() time.Duration { return min(6*s.Interval, longest) }

// Check adds what cannot be used to f.
func (s Settings) Check(f *settings.Faults) {
	if s.Instead != "" && s.Instead != none {
		f.Add("", "%q is neither a section nor none, which asks nobody", s.Instead)
	}
	if s.Interval < shortest || s.Interval > longest {
		f.Add("interval", "%v is not between %v and %v", s.Interval, shortest, longest)
	}
	checkPath(f, "metrics_path", s.MetricsPath)
	if s.CachePath != none {
		checkPath(f, "cache_path", s.CachePath)
	}
	if s.HealthCheckPath != "" {
		checkPath(f, "health_check_path", s.HealthCheckPath)
		if s.Prometheus != "" {
			f.Add("health_check_path", "health checks replace reports, and prometheus is a source of reports")
		}
	}
	s.Names.read(f.In("names"))
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
