package report

import (
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Bounds of the configured durations. A report an hour old helps nobody.
const (
	shortest = time.Millisecond
	longest  = time.Hour
)

// Config says how upstreams, or a Prometheus server, are asked. The zero value
// of each field stands for its default.
type Config struct {
	// Interval is the mean time between two polls of one upstream, or of the
	// Prometheus server, from start to start; each is up to 20 % shorter or
	// longer. Default 5 s.
	Interval time.Duration
	// CacheInterval is the like for the cache listing of one upstream where a
	// Prometheus server tells the load; a Poller asks for both at once.
	// Default six intervals, but at most an hour.
	CacheInterval time.Duration
	// Timeout bounds each answer, to its last byte. Default 2 s.
	Timeout time.Duration
	// MetricsPath and CachePath are where an upstream shows its metrics and
	// its cache. They may have a query. Defaults "/metrics" and "/v1/cache/projects".
	MetricsPath, CachePath string
	// Names are the metrics to read.
	Names Names
	// Prometheus is the server that tells the load, if one does.
	Prometheus Server
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

func or[T comparable](value *T, fallback T) {
	var zero T
	if *value == zero {
		*value = fallback
	}
}

// filled returns c with its defaults.
func (c Config) filled() Config {
	or(&c.Interval, 5*time.Second)
	or(&c.CacheInterval, min(6*c.Interval, longest))
	or(&c.Timeout, 2*time.Second)
	or(&c.MetricsPath, "/metrics")
	or(&c.CachePath, "/v1/cache/projects")
	c.Prometheus.fill()
	or(&c.MaxMetricsBytes, 4<<20)
	or(&c.MaxCacheBytes, 64<<20)
	or(&c.MaxMetricsLines, 50_000)
	or(&c.MaxProjects, 1_000_000)
	c.Names.fill()
	return c
}

// check says what is wrong with a filled Config.
func (c Config) check() error {
	for _, d := range []struct {
		key   string
		value time.Duration
	}{{"interval", c.Interval}, {"cache_interval", c.CacheInterval}, {"timeout", c.Timeout}} {
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
	if err := c.Prometheus.check(); err != nil {
		return err
	}
	for _, m := range []struct {
		key   string
		value int64
	}{
		{"max_metrics_bytes", c.MaxMetricsBytes}, {"max_cache_bytes", c.MaxCacheBytes},
		{"prometheus.max_bytes", c.Prometheus.MaxBytes},
		{"max_metrics_lines", int64(c.MaxMetricsLines)}, {"max_projects", int64(c.MaxProjects)},
	} {
		if m.value < 1 {
			return fmt.Errorf("%s is %d, not above 0", m.key, m.value)
		}
	}
	return c.Names.check()
}
