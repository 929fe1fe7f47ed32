package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/settings"
)

func faultsOf(s Settings) []settings.Fault {
	var f settings.Faults
	s.Check(f.In("reports"))
	return f.All()
}

func TestDefaultIsSound(t *testing.T) {
	s := Default()
	assert.Empty(t, faultsOf(s))
	s.Source = FromPrometheus
	assert.Empty(t, faultsOf(s))
	assert.Equal(t, Server{URL: "http://127.0.0.1:9090", InstanceLabel: "instance"}, s.server())
	assert.Equal(t, 30*time.Second, s.cacheInterval())
	s.Interval = 20 * time.Minute
	assert.Equal(t, time.Hour, s.cacheInterval(), "six intervals, but at most one hour")
	s.CacheInterval = time.Minute
	assert.Equal(t, time.Minute, s.cacheInterval())
}

func TestSettingsRefuseNonsense(t *testing.T) {
	for _, c := range []struct {
		key, want string
		change    func(*Settings)
	}{
		{"source", `"moon" is not one of upstreams, prometheus`, func(s *Settings) { s.Source = "moon" }},
		{"interval", "-1s must be positive", func(s *Settings) { s.Interval = -time.Second }},
		{"interval", "0s must be positive", func(s *Settings) { s.Interval = 0 }},
		{"interval", "2h0m0s is not between 1ms and 1h0m0s", func(s *Settings) { s.Interval = 2 * time.Hour }},
		{"timeout", "1µs is not between 1ms and 1h0m0s", func(s *Settings) { s.Timeout = time.Microsecond }},
		{"cache_interval", "1µs is not between 1ms and 1h0m0s", func(s *Settings) { s.CacheInterval = time.Microsecond }},
		{"cache_interval", "51s is more than 10 times reports.interval, 5s: a listing counts for 12 intervals", func(s *Settings) { s.CacheInterval = 51 * time.Second }},
		{"metrics_path", `"metrics" must begin with /`, func(s *Settings) { s.MetricsPath = "metrics" }},
		{"metrics_path", `"//elsewhere/metrics" is not a path such as /metrics`, func(s *Settings) { s.MetricsPath = "//elsewhere/metrics" }},
		{"cache_path", `"" must begin with /`, func(s *Settings) { s.CachePath = "" }},
		{"cache_path", `"http://elsewhere/" must begin with /`, func(s *Settings) { s.CachePath = "http://elsewhere/" }},
		{"cache_path", `"/a#b" is not a path such as /metrics`, func(s *Settings) { s.CachePath = "/a#b" }},
		{"cache_path", `"/%zz" is not a path such as /metrics`, func(s *Settings) { s.CachePath = "/%zz" }},
		{"names.wait", `"a\xffb" is not the name of a metric`, func(s *Settings) { s.Names.Wait = "a\xffb" }},
		{"names.cores", `"" is not the name of a metric`, func(s *Settings) { s.Names.Cores = "" }},
		{"names.running", `"x" is reports.names.stalled already`, func(s *Settings) { s.Names.Stalled, s.Names.Running = "x", "x" }},
		{"names.cores_busy", `"ruleserver_cores_busy" is reports.names.cores already`, func(s *Settings) { s.Names.Cores = "ruleserver_cores_busy" }},
		{"names.running", `"a{b}" is not a metric such as jobs{kind="a"}, with at most 16 labels`, func(s *Settings) { s.Names.Running = "a{b}" }},
		{"names.running", `"a{b=1}" is not a metric such as jobs{kind="a"}, with at most 16 labels`, func(s *Settings) { s.Names.Running = "a{b=1}" }},
		{"names.running", `"a{b=\"1\"" is not a metric such as jobs{kind="a"}, with at most 16 labels`, func(s *Settings) { s.Names.Running = `a{b="1"` }},
		{"names.running", `"a{b=\"1\"}c" is not a metric such as jobs{kind="a"}, with at most 16 labels`, func(s *Settings) { s.Names.Running = `a{b="1"}c` }},
		{"names.running", `"{b=\"1\"}" is not the name of a metric`, func(s *Settings) { s.Names.Running = `{b="1"}` }},
		{"names.running", `"a * -1" has a scale that is no positive number: write jobs * 0.001`, func(s *Settings) { s.Names.Running = "a * -1" }},
		{"names.running", `"a * b" has a scale that is no positive number: write jobs * 0.001`, func(s *Settings) { s.Names.Running = "a * b" }},
		{"names.running", `"a * Inf" has a scale that is no positive number: write jobs * 0.001`, func(s *Settings) { s.Names.Running = "a * Inf" }},
		{"names.running", `"x{a=\"b\"}*2" is not a metric such as jobs{kind="a"}, with at most 16 labels`, func(s *Settings) { s.Names.Running = `x{a="b"}*2` }},
		{"names.running", `"x{ a = \"b\" , } * 2" is reports.names.stalled already`, func(s *Settings) {
			s.Names.Stalled, s.Names.Running = `x{a="b"}`, `x{ a = "b" , } * 2`
		}},
		{"names.running", "one of running and stalled must be a metric: nothing else tells the load", func(s *Settings) { s.Names.Stalled, s.Names.Running = "none", "none" }},
		{"cache_listing.projects", `"projects" is not a JSON Pointer such as /projects`, func(s *Settings) { s.CacheListing.Projects = "projects" }},
		{"cache_listing.id", `"/~2" is not a JSON Pointer such as /projects`, func(s *Settings) { s.CacheListing.ID = "/~2" }},
		{"cache_listing.bytes", `"/id" and reports.cache_listing.id, "/id", cannot be within one another`, func(s *Settings) { s.CacheListing.Bytes = "/id" }},
		{"cache_listing.bytes", `"/id/x" and reports.cache_listing.id, "/id", cannot be within one another`, func(s *Settings) { s.CacheListing.Bytes = "/id/x" }},
		{"cache_listing.bytes", `"/bytes" and reports.cache_listing.id, "", cannot be within one another`, func(s *Settings) { s.CacheListing.ID = "" }},
		{"prometheus.url", `"127.0.0.1:9090" is not a URL such as http://127.0.0.1:9090`, func(s *Settings) { s.Prometheus.URL = "127.0.0.1:9090" }},
		{"prometheus.url", `"ftp://a" is not a URL such as http://127.0.0.1:9090`, func(s *Settings) { s.Prometheus.URL = "ftp://a" }},
		{"prometheus.url", `"http://" is not a URL such as http://127.0.0.1:9090`, func(s *Settings) { s.Prometheus.URL = "http://" }},
		{"prometheus.url", `"" is not a URL such as http://127.0.0.1:9090`, func(s *Settings) { s.Prometheus.URL = "" }},
		{"prometheus.url", "it holds credentials, which do not belong in a configuration file", func(s *Settings) { s.Prometheus.URL = "http://user:secret@a" }},
		{"prometheus.url", `"http://a/?b=c" has a query or a fragment, and pilotfish adds its own query`, func(s *Settings) { s.Prometheus.URL = "http://a/?b=c" }},
		{"prometheus.instance_label", `"a b" is not a label that can hold an upstream's address`, func(s *Settings) { s.Prometheus.InstanceLabel = "a b" }},
		{"prometheus.instance_label", `"priority" is not a label that can hold an upstream's address`, func(s *Settings) { s.Prometheus.InstanceLabel = "priority" }},
	} {
		s := Default()
		s.Source, s.Prometheus = FromPrometheus, new(Server)
		s.Prometheus.SetDefaults()
		c.change(&s)
		assert.Equal(t, []settings.Fault{{Key: "reports." + c.key, Text: c.want}}, faultsOf(s))
	}
}

func TestSettingsOfASourceThatIsNotAskedAreRefused(t *testing.T) {
	s := Default()
	s.CacheInterval, s.Prometheus = 30*time.Second, new(Server)
	s.Prometheus.SetDefaults()
	assert.Equal(t, []settings.Fault{
		{Key: "reports.cache_interval", Text: "30s changes nothing while reports.source is upstreams, which tell both at once"},
		{Key: "reports.prometheus", Text: "nobody asks it while reports.source is upstreams"},
	}, faultsOf(s))
}
