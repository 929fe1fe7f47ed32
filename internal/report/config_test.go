package report

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

func construct(c Config) (*Poller, error) {
	return New(c, rand.New(rand.NewPCG(1, 2)), func(string, pool.Report) {}, func(string, error) {})
}

func TestConfigRefusesNonsense(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Interval: -time.Second}, "reports: interval is -1s, not between 1ms and 1h0m0s"},
		{Config{Interval: 2 * time.Hour}, "reports: interval is 2h0m0s, not between 1ms and 1h0m0s"},
		{Config{CacheInterval: time.Microsecond}, "reports: cache_interval is 1µs, not between 1ms and 1h0m0s"},
		{Config{Prometheus: Server{URL: "127.0.0.1:9090"}}, `reports: prometheus.url is "127.0.0.1:9090", not an address such as "http://127.0.0.1:9090"`},
		{Config{Prometheus: Server{URL: "ftp://a"}}, `reports: prometheus.url is "ftp://a", not an address such as "http://127.0.0.1:9090"`},
		{Config{Prometheus: Server{URL: "http://"}}, `reports: prometheus.url is "http://", not an address such as "http://127.0.0.1:9090"`},
		{Config{Prometheus: Server{URL: "http://user:secret@a"}}, "reports: prometheus.url holds credentials, which do not belong there"},
		{Config{Prometheus: Server{URL: "http://a/?b=c"}}, `reports: prometheus.url is "http://a/?b=c", not an address such as "http://127.0.0.1:9090"`},
		{Config{Prometheus: Server{InstanceLabel: "a b"}}, `reports: prometheus.instance_label is "a b", not a label that can bear an address`},
		{Config{Prometheus: Server{InstanceLabel: "priority"}}, `reports: prometheus.instance_label is "priority", not a label that can bear an address`},
		{Config{Prometheus: Server{MaxBytes: -5}}, "reports: prometheus.max_bytes is -5, not above 0"},
		{Config{Timeout: time.Microsecond}, "reports: timeout is 1µs, not between 1ms and 1h0m0s"},
		{Config{MetricsPath: "metrics"}, `reports: metrics_path is "metrics", not a path such as "/metrics"`},
		{Config{MetricsPath: "//elsewhere/metrics"}, `reports: metrics_path is "//elsewhere/metrics", not a path such as "/metrics"`},
		{Config{CachePath: "http://elsewhere/"}, `reports: cache_path is "http://elsewhere/", not a path such as "/metrics"`},
		{Config{CachePath: "/a#b"}, `reports: cache_path is "/a#b", not a path such as "/metrics"`},
		{Config{CachePath: "/%zz"}, `reports: cache_path is "/%zz", not a path such as "/metrics"`},
		{Config{MaxMetricsBytes: -1}, "reports: max_metrics_bytes is -1, not above 0"},
		{Config{MaxCacheBytes: -2}, "reports: max_cache_bytes is -2, not above 0"},
		{Config{MaxMetricsLines: -3}, "reports: max_metrics_lines is -3, not above 0"},
		{Config{MaxProjects: -4}, "reports: max_projects is -4, not above 0"},
		{Config{Names: Names{Wait: "a\xffb"}}, `reports: names.wait is "a\xffb", not the name of a metric`},
		{Config{Names: Names{Stalled: "x", Running: "x"}}, `reports: names.running is "x", which is names.stalled already`},
		{Config{Names: Names{Cores: "ruleserver_cores_busy"}}, `reports: names.cores_busy is "ruleserver_cores_busy", which is names.cores already`},
	} {
		_, err := construct(c.config)
		assert.EqualError(t, err, c.want)
	}
}

func TestConfigDefaults(t *testing.T) {
	p, err := construct(Config{})
	require.NoError(t, err)
	assert.Equal(t, Config{
		Interval:        5 * time.Second,
		CacheInterval:   30 * time.Second,
		Timeout:         2 * time.Second,
		MetricsPath:     "/metrics",
		CachePath:       "/v1/cache/projects",
		MaxMetricsBytes: 4 << 20,
		MaxCacheBytes:   64 << 20,
		MaxMetricsLines: 50_000,
		MaxProjects:     1_000_000,
		Prometheus:      Server{URL: "http://127.0.0.1:9090", InstanceLabel: "instance", MaxBytes: 32 << 20},
		Names: Names{
			Stalled:   "ruleserver_stalled_joblets",
			Running:   "ruleserver_jobs_running",
			Cores:     "ruleserver_cores",
			CoresBusy: "ruleserver_cores_busy",
			Completed: "ruleserver_jobs_completed_total",
			Wait:      "ruleserver_wait_seconds",
			Execution: "ruleserver_execution_seconds",
			Response:  "ruleserver_response_seconds",
		},
	}, p.config)
}

func TestConfigKeepsWhatIsGiven(t *testing.T) {
	given := Config{Interval: time.Second, MetricsPath: "/m?all=1", Names: Names{Stalled: "stalled.promises"}, MaxProjects: 7}
	p, err := construct(given)
	require.NoError(t, err)
	assert.Equal(t, time.Second, p.config.Interval)
	assert.Equal(t, "/m?all=1", p.config.MetricsPath)
	assert.Equal(t, "stalled.promises", p.config.Names.Stalled)
	assert.Equal(t, 7, p.config.MaxProjects)
}

func TestNewNeedsItsFunctions(t *testing.T) {
	assert.PanicsWithValue(t, "report: New needs a random source, a sink and a failed function", func() {
		_, _ = New(Config{}, rand.New(rand.NewPCG(1, 2)), nil, nil)
	})
}
