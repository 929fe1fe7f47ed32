package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"pilotfish/pkg/overload"
	"pilotfish/pkg/selection"
)

// fault is a value that cannot be used.
type fault struct{ key, text string }

// Check reports what is wrong with a configuration that did not come from a
// file; keys are named as in one.
func (c *Config) Check() error {
	if fs := c.faults(); len(fs) > 0 {
		return fmt.Errorf("%s: %s", fs[0].key, fs[0].text)
	}
	return nil
}

func (c *Config) faults() []fault {
	var f faults
	f.address("listen", c.Listen)
	f.address("admin", c.Admin)
	if c.Listen == c.Admin && !strings.HasSuffix(c.Listen, ":0") { // two free ports are never the same
		f.add("admin", "%s is taken by listen", c.Admin)
	}
	f.discovery(&c.Discovery)
	f.reports(&c.Reports)
	for _, p := range []struct{ key, pointer string }{
		{"job.project", c.Job.Project}, {"job.priority", c.Job.Priority}, {"job.queue", c.Job.Queue},
		{"job.evaluate", c.Job.Evaluate}, {"job.stream", c.Job.Stream}, {"job.session", c.Job.Session},
	} {
		if !strings.HasPrefix(p.pointer, "/") {
			f.add(p.key, "%q is not a JSON Pointer such as /project_id", p.pointer)
		}
	}
	f.atLeast("job.max_body", int64(c.Job.MaxBody), 1)
	f.atLeast("job.budget", int64(c.Job.Budget), 0)
	f.oneOf("selection.policy", c.Selection.Policy, selection.Names())
	f.oneOf("overload.policy", c.Overload.Policy, overload.Names())
	if !(c.Overload.Stalled > 0) { // in this form it refuses NaN too
		f.add("overload.stalled", "%v must be positive", c.Overload.Stalled)
	}
	f.atLeast("breaker.failures", int64(c.Breaker.Failures), 1)
	f.positive("breaker.open", c.Breaker.Open)
	if c.Breaker.OpenMax < c.Breaker.Open {
		f.add("breaker.open_max", "%v is less than breaker.open, %v", c.Breaker.OpenMax, c.Breaker.Open)
	}
	f.atLeast("prewarm.projects", int64(c.Prewarm.Projects), 0)
	if !strings.HasPrefix(c.Prewarm.Path, "/") {
		f.add("prewarm.path", "%q must start with /", c.Prewarm.Path)
	}
	f.atLeast("retry.attempts", int64(c.Retry.Attempts), 1)
	f.positive("retry.connect_timeout", c.Retry.ConnectTimeout)
	f.positive("retry.first_byte", c.Retry.FirstByte)
	if !(c.Retry.Budget > 0 && c.Retry.Budget <= 1) {
		f.add("retry.budget", "%v is not a share above 0 and up to 1; attempts: 1 means no retries", c.Retry.Budget)
	}
	f.atLeast("queue.jobs", int64(c.Queue.Jobs), 1)
	f.atLeast("queue.bytes", int64(c.Queue.Bytes), 1)
	f.positive("queue.wait", c.Queue.Wait)
	f.positive("stream.idle", c.Stream.Idle)
	f.positive("shutdown.grace", c.Shutdown.Grace)
	f.oneOf("log.level", c.Log.Level, []string{"debug", "info", "warn", "error"})
	return f
}

type faults []fault

func (f *faults) discovery(d *Discovery) {
	sources := 0
	for _, given := range []bool{len(d.Static) > 0, d.File != nil, d.DNS != nil, d.Consul != nil} {
		if given {
			sources++
		}
	}
	if sources != 1 {
		f.add("discovery", "exactly one of static, file, dns and consul must say where the upstreams are, not %d of them", sources)
	}
	for i, a := range d.Static {
		f.upstream(fmt.Sprintf("discovery.static[%d]", i), a)
	}
	if d.File != nil && d.File.Path == "" {
		f.add("discovery.file.path", "a path is required")
	}
	if d.DNS != nil && d.DNS.Name == "" {
		f.add("discovery.dns.name", "a name is required")
	}
	if d.Consul != nil && d.Consul.Service == "" {
		f.add("discovery.consul.service", "a service is required")
	}
	if d.Consul != nil && d.Consul.KeepLast < 0 {
		f.add("discovery.consul.keep_last", "%v must not be negative", d.Consul.KeepLast)
	}
}

func (f *faults) reports(r *Reports) {
	f.oneOf("reports.source", r.Source, []string{FromUpstreams, FromPrometheus})
	f.positive("reports.interval", r.Interval)
	f.positive("reports.timeout", r.Timeout)
	f.path("reports.metrics_path", r.MetricsPath)
	f.path("reports.cache_path", r.CachePath)
	if r.CacheInterval != 0 {
		f.positive("reports.cache_interval", r.CacheInterval)
		if r.CacheInterval > 10*r.Interval {
			f.add("reports.cache_interval", "%v is more than ten times reports.interval, %v: a listing counts for twelve", r.CacheInterval, r.Interval)
		}
	}
	if r.Prometheus != nil && r.Prometheus.URL != "" {
		f.url("reports.prometheus.url", r.Prometheus.URL)
	}
	if r.Source == FromUpstreams {
		if r.CacheInterval > 0 {
			f.add("reports.cache_interval", "%v changes nothing while reports.source is upstreams, which tell both at once", r.CacheInterval)
		}
		if r.Prometheus != nil {
			f.add("reports.prometheus", "nobody asks it while reports.source is upstreams")
		}
	}
}

func (f *faults) add(key, format string, args ...any) {
	*f = append(*f, fault{key, fmt.Sprintf(format, args...)})
}

func (f *faults) positive(key string, d time.Duration) {
	if d <= 0 {
		f.add(key, "%v must be positive", d)
	}
}

func (f *faults) atLeast(key string, n, least int64) {
	if n < least {
		f.add(key, "%d must be at least %d", n, least)
	}
}

func (f *faults) path(key, path string) {
	if !strings.HasPrefix(path, "/") {
		f.add(key, "%q must begin with /", path)
	}
}

func (f *faults) url(key, text string) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		f.add(key, "%q is not a URL such as http://127.0.0.1:9090", text)
	}
}

func (f *faults) oneOf(key, word string, words []string) {
	if !slices.Contains(words, word) {
		f.add(key, "%q is not one of %s", word, strings.Join(words, ", "))
	}
}

// address checks host:port to listen on; port 0 takes a free one.
func (f *faults) address(key, a string) {
	_, port, err := net.SplitHostPort(a)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		f.add(key, "%q is not host:port", a)
	}
}

// upstream checks host:port to connect to.
func (f *faults) upstream(key, a string) {
	host, port, err := net.SplitHostPort(a)
	if n, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || n == 0 || host == "" {
		f.add(key, "%q is not host:port", a)
	}
}
