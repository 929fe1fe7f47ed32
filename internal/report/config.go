package report

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/common/model"
)

// Bounds of the configured durations. A report an hour old helps nobody.
const (
	shortest = time.Millisecond
	longest  = time.Hour
)

// Config says how upstreams are polled. The zero value of each field stands
// for its default.
type Config struct {
	// Interval is the mean time between two polls of one upstream, from start
	// to start; each is up to 20 % shorter or longer. Default 5 s.
	Interval time.Duration
	// Timeout bounds each of the two answers of a poll, to their last byte. Default 2 s.
	Timeout time.Duration
	// MetricsPath and CachePath are where an upstream shows its metrics and
	// its cache. They may have a query. Defaults "/metrics" and "/v1/cache/projects".
	MetricsPath, CachePath string
	// Names are the metrics to read.
	Names Names
	// MaxMetricsBytes and MaxCacheBytes bound the two answers, compressed and
	// not. Defaults 4 MiB and 64 MiB.
	MaxMetricsBytes, MaxCacheBytes int64
	// MaxMetricsLines bounds the lines of the metrics, each of which may cost
	// far more memory than its bytes. Default 50,000.
	MaxMetricsLines int
	// MaxProjects bounds the projects in one cache listing. Default 1,000,000.
	MaxProjects int
	// Transport carries the requests. Default: a transport of the poller's
	// own that knows no proxy, keeps one connection per upstream and takes at
	// most 64 KiB of headers.
	Transport http.RoundTripper
}

// Names are the metrics of an upstream that make up a report. An empty name
// stands for its default. A metric is summed over its labels; the label
// "priority" tells high from low where the report does, and without it all
// is low.
type Names struct {
	// Stalled and Running are gauges that every upstream must have. Defaults
	// "ruleserver_stalled_joblets" and "ruleserver_jobs_running".
	Stalled, Running string
	// Cores and CoresBusy are gauges. Defaults "ruleserver_cores" and "ruleserver_cores_busy".
	Cores, CoresBusy string
	// Completed is a counter of jobs. Default "ruleserver_jobs_completed_total".
	Completed string
	// Wait, Execution and Response are histograms or summaries of seconds.
	// Where there is no Response, it is the sum of the other two. Defaults
	// "ruleserver_wait_seconds", "ruleserver_execution_seconds" and "ruleserver_response_seconds".
	Wait, Execution, Response string
}

// named is one of the Names, with its key in a configuration.
type named struct {
	key  string
	name *string
}

func (n *Names) all() []named {
	return []named{
		{"stalled", &n.Stalled}, {"running", &n.Running},
		{"cores", &n.Cores}, {"cores_busy", &n.CoresBusy},
		{"completed", &n.Completed},
		{"wait", &n.Wait}, {"execution", &n.Execution}, {"response", &n.Response},
	}
}

func or[T comparable](value *T, fallback T) {
	var zero T
	if *value == zero {
		*value = fallback
	}
}

// filled returns c with its defaults.
func (c Config) filled() Config {
	or(&c.Interval, 5*time.Second)
	or(&c.Timeout, 2*time.Second)
	or(&c.MetricsPath, "/metrics")
	or(&c.CachePath, "/v1/cache/projects")
	or(&c.MaxMetricsBytes, 4<<20)
	or(&c.MaxCacheBytes, 64<<20)
	or(&c.MaxMetricsLines, 50_000)
	or(&c.MaxProjects, 1_000_000)
	or(&c.Names.Stalled, "ruleserver_stalled_joblets")
	or(&c.Names.Running, "ruleserver_jobs_running")
	or(&c.Names.Cores, "ruleserver_cores")
	or(&c.Names.CoresBusy, "ruleserver_cores_busy")
	or(&c.Names.Completed, "ruleserver_jobs_completed_total")
	or(&c.Names.Wait, "ruleserver_wait_seconds")
	or(&c.Names.Execution, "ruleserver_execution_seconds")
	or(&c.Names.Response, "ruleserver_response_seconds")
	return c
}

// check says what is wrong with a filled Config.
func (c Config) check() error {
	for _, d := range []struct {
		key   string
		value time.Duration
	}{{"interval", c.Interval}, {"timeout", c.Timeout}} {
		if d.value < shortest || d.value > longest {
			return fmt.Errorf("%s is %v, not between %v and %v", d.key, d.value, shortest, longest)
		}
	}
	for _, p := range []struct{ key, value string }{{"metrics_path", c.MetricsPath}, {"cache_path", c.CachePath}} {
		u, err := url.Parse(p.value)
		if err != nil || p.value[0] != '/' || u.Host != "" || u.Fragment != "" {
			return fmt.Errorf("%s is %q, not a path such as \"/metrics\"", p.key, p.value)
		}
	}
	for _, m := range []struct {
		key   string
		value int64
	}{
		{"max_metrics_bytes", c.MaxMetricsBytes}, {"max_cache_bytes", c.MaxCacheBytes},
		{"max_metrics_lines", int64(c.MaxMetricsLines)}, {"max_projects", int64(c.MaxProjects)},
	} {
		if m.value < 1 {
			return fmt.Errorf("%s is %d, not above 0", m.key, m.value)
		}
	}
	taken := map[string]string{}
	for _, n := range c.Names.all() {
		if !model.UTF8Validation.IsValidMetricName(*n.name) {
			return fmt.Errorf("names.%s is %q, not the name of a metric", n.key, *n.name)
		}
		if other := taken[*n.name]; other != "" {
			return fmt.Errorf("names.%s is %q, which is names.%s already", n.key, *n.name, other)
		}
		taken[*n.name] = n.key
	}
	return nil
}
