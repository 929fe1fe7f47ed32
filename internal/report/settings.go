package report

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// The sources of the upstreams' load.
const (
	FromUpstreams  = "upstreams"  // each upstream, of its own
	FromPrometheus = "prometheus" // one server that scrapes them all
)

// Bounds of every duration in Settings. A report that is an hour old helps nobody.
const (
	shortest = time.Millisecond
	longest  = time.Hour
)

// Settings is the section "reports" of a configuration file.
type Settings struct {
	// Source is where the load of the upstreams comes from: "upstreams", each its
	// own, or "prometheus", one server that scrapes them all.
	Source string `yaml:"source"`
	// Interval is the mean time between the starts of two polls of one upstream,
	// or of the Prometheus server. Each interval is up to 20 % shorter or longer.
	Interval time.Duration `yaml:"interval"`
	// Timeout is the longest that a response may take, to its last byte.
	Timeout time.Duration `yaml:"timeout"`
	// MetricsPath is where an upstream serves its metrics. It may have a query.
	MetricsPath string `yaml:"metrics_path"`
	// CachePath is where an upstream serves its cache listing, or any JSON document
	// that tells what it holds. It may have a query. "none" asks for none: then
	// pilotfish assumes that a project's data is where its jobs went.
	CachePath string `yaml:"cache_path"`
	// CacheListing says what a cache listing looks like.
	CacheListing CacheListing `yaml:"cache_listing"`
	// Names are the metrics of an upstream that make up a report. A metric is
	// summed over its labels, except that the label "priority" separates high from
	// low. Values without that label are low. A name may be followed by labels that
	// samples must have, and by a scale: jobs{kind="a"} * 0.001. The scale of a
	// histogram or summary is for its sum. "none" is no metric.
	Names Names `yaml:"names"`
	// ORCA says how load reports in the form of ORCA are read.
	ORCA ORCA `yaml:"orca"`
	// CacheInterval is the mean time between two requests for the cache listing
	// of one upstream, where the source is "prometheus". 0 is six intervals, but at
	// most one hour. With the source "upstreams", load and listing are asked for
	// together, every interval.
	CacheInterval time.Duration `yaml:"cache_interval"`
	// Prometheus is the server to ask, where the source is "prometheus".
	Prometheus *Server `yaml:"prometheus"`
}

// Names are the metrics of an upstream that make up a report.
type Names struct {
	// Stalled is the gauge of joblets that are ready and wait for a core. Every
	// upstream must have it; "none" counts as 0.
	Stalled string `yaml:"stalled"`
	// Running is the gauge of jobs that run. Every upstream must have it; "none"
	// counts as 0.
	Running string `yaml:"running"`
	// Cores is the gauge of cores.
	Cores string `yaml:"cores"`
	// CoresBusy is the gauge of cores that work.
	CoresBusy string `yaml:"cores_busy"`
	// Completed is the counter of jobs that ended.
	Completed string `yaml:"completed"`
	// Failed is the counter of those of them that failed for a reason of the
	// upstream's own. With it, sidecars learn from one another's failures: where at
	// least half of the jobs failed since the report before, one failure of its own
	// opens a sidecar's breaker.
	Failed string `yaml:"failed"`
	// Wait is the histogram or summary of the seconds that jobs waited.
	Wait string `yaml:"wait"`
	// Execution is the histogram or summary of the seconds that jobs executed.
	Execution string `yaml:"execution"`
	// Response is the histogram or summary of the seconds from a job's arrival to
	// its end. Where an upstream has none, it is wait plus execution.
	Response string `yaml:"response"`
}

// Server is a Prometheus server that scrapes every upstream.
type Server struct {
	// URL is where it serves, by http or https. It may have a path.
	URL string `yaml:"url"`
	// InstanceLabel is the label whose value is an upstream's address, exactly as
	// discovery gives it.
	InstanceLabel string `yaml:"instance_label"`
	// TLS is how to reach it where its URL begins with https. The files are read
	// again when they change.
	TLS settings.TLS `yaml:"tls"`
}

// Default is what a file that says nothing means.
func Default() Settings {
	return Settings{
		Source:      FromUpstreams,
		Interval:    5 * time.Second,
		Timeout:     2 * time.Second,
		MetricsPath: "/metrics",
		CachePath:   "/v1/cache/projects",
		CacheListing: CacheListing{
			Projects: "/projects",
			ID:       "/id",
			Bytes:    "/bytes",
		},
		Names: Names{
			Stalled:   "ruleserver_stalled_joblets",
			Running:   "ruleserver_jobs_running",
			Cores:     "ruleserver_cores",
			CoresBusy: "ruleserver_cores_busy",
			Completed: "ruleserver_jobs_completed_total",
			Failed:    `ruleserver_jobs_completed_total{outcome="failed"}`,
			Wait:      "ruleserver_wait_seconds",
			Execution: "ruleserver_execution_seconds",
			Response:  "ruleserver_response_seconds",
		},
		ORCA: ORCA{Running: "running", Stalled: "stalled"},
	}
}

// SetDefaults makes s what a section without keys means.
func (s *Server) SetDefaults() {
	*s = Server{URL: "http://127.0.0.1:9090", InstanceLabel: "instance"}
}

// server is the Prometheus server in effect.
func (s Settings) server() (in Server) {
	if s.Prometheus != nil {
		return *s.Prometheus
	}
	in.SetDefaults()
	return in
}

// cacheInterval is the CacheInterval in effect.
func (s Settings) cacheInterval() time.Duration {
	if s.CacheInterval == 0 {
		return min(6*s.Interval, longest)
	}
	return s.CacheInterval
}

// Check adds what cannot be used to f.
func (s Settings) Check(f *settings.Faults) {
	f.OneOf("source", s.Source, []string{FromUpstreams, FromPrometheus})
	checkDuration(f, "interval", s.Interval)
	checkDuration(f, "timeout", s.Timeout)
	if s.Interval > 0 && s.Timeout > s.Interval {
		f.Warn("timeout", "%v is more than reports.interval, %v: an upstream that responds late is asked less often than each interval", s.Timeout, s.Interval)
	}
	checkPath(f, "metrics_path", s.MetricsPath)
	if s.CachePath != noListing {
		checkPath(f, "cache_path", s.CachePath)
	}
	s.CacheListing.check(f.In("cache_listing"))
	if s.CacheInterval != 0 {
		checkDuration(f, "cache_interval", s.CacheInterval)
	}
	const most = pool.ListingIntervals / (1 + jitter) // so that a listing counts until the next one
	if s.Interval > 0 && s.CacheInterval > most*s.Interval {
		f.Add("cache_interval", "%v is more than %v times reports.interval, %v: a listing counts for %d intervals",
			s.CacheInterval, most, s.Interval, pool.ListingIntervals)
	}
	s.Names.metrics(f.In("names"))
	s.ORCA.check(f.In("orca"))
	if s.Prometheus != nil {
		s.Prometheus.check(f.In("prometheus"))
	}
	if s.Source != FromUpstreams {
		return
	}
	if s.CacheInterval > 0 {
		f.Add("cache_interval", "%v changes nothing while reports.source is upstreams, which tell both at once", s.CacheInterval)
	}
	if s.Prometheus != nil {
		f.Add("prometheus", "nobody asks it while reports.source is upstreams")
	}
}

func checkDuration(f *settings.Faults, key string, d time.Duration) {
	if d > 0 && (d < shortest || d > longest) {
		f.Add(key, "%v is not between %v and %v", d, shortest, longest)
		return
	}
	f.Positive(key, d)
}

func checkPath(f *settings.Faults, key, path string) {
	u, err := url.Parse(path)
	if strings.HasPrefix(path, "/") && (err != nil || u.Host != "" || u.Fragment != "") {
		f.Add(key, "%q is not a path such as /metrics", path)
		return
	}
	f.Path(key, path)
}

func (s *Server) check(f *settings.Faults) {
	u, err := url.Parse(s.URL)
	switch {
	case err == nil && u.User != nil:
		f.Add("url", "it holds credentials, which do not belong in a configuration file") // nor in a message
	case err == nil && (u.RawQuery != "" || u.Fragment != ""):
		f.Add("url", "%q has a query or a fragment, and pilotfish adds its own query", s.URL)
	default:
		f.URL("url", s.URL)
	}
	if s.TLS != (settings.TLS{}) && !strings.HasPrefix(s.URL, "https:") {
		f.Add("tls", "it changes nothing while url does not begin with https")
	}
	s.TLS.Check(f.In("tls"))
	if !model.LegacyValidation.IsValidLabelName(s.InstanceLabel) || slices.Contains(queryLabels, s.InstanceLabel) {
		f.Add("instance_label", "%q is not a label that can hold an upstream's address", s.InstanceLabel)
	}
}
