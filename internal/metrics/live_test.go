package metrics

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/capacity"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
)

// lived returns the series that depend on live state.
func lived(t *testing.T, m *Metrics) map[string]float64 {
	t.Helper()
	all := series(t, m.registry)
	bare := series(t, newMetrics().registry)
	maps.DeleteFunc(all, func(name string, _ float64) bool {
		_, ok := bare[name]
		return ok || !strings.HasPrefix(name, "pilotfish_")
	})
	return all
}

func at(address string) pool.Upstream { return pool.Upstream{Address: address} }

func TestAScrapeReadsLiveState(t *testing.T) {
	m := newMetrics()
	assert.Empty(t, lived(t, m), "without a source")

	state := Live{
		Fleet:   quality.Status{Mode: quality.Growing, Trend: quality.Trend{Jobs: 20, Slope: 0.25}, DeadlineSeconds: new(90.0)},
		Quality: map[string]quality.Status{"10.0.0.1:80": {Mode: quality.Losing}},
		Upstreams: []pool.State{
			{Upstream: at("10.0.0.1:80"), Eligible: true, InFlight: 3, Jobs: 8, Cores: 4, ReportAge: 1.5, Running: 5, Stalled: 7, Cached: 6, Drained: true, Level: 1, Implausible: "1e+09 busy cores"},
			{Upstream: at("10.0.0.2:80"), InFlight: 1, Breaker: breaker.Status{State: breaker.Open}, ReportAge: -1, Stalled: 9, Level: 0.25, Suspect: "2 reports in a row failed"},
		},
		Discovery: Discovery{Age: 90 * time.Second, Applied: 4, Refused: 2, Failed: 1},
		Bodies:    Bounded{Taken: 4096, Most: 8192}, QueueBytes: Bounded{Taken: 100, Most: 200}, QueueJobs: 50,
		Connections: map[string]Bounded{"jobs": {Taken: 2, Most: 4096}},
		Idle:        map[string]int{"10.0.0.2:80": 9, "left:80": 1},
		Limited:     5,
		Capacity: &capacity.Advice{
			Now: capacity.Fill{Full: 1.25}, Flat: capacity.Need{Upstreams: 7}, Bounded: &capacity.Need{Upstreams: 5},
		},
		HeadBytes: Bounded{Taken: 512, Most: 1024}, HeadsRefused: 6,
		Capture: Capture{Written: 11, Lost: 3},
	}
	m.SetSource(func(time.Time) Live { return state })
	want := map[string]float64{
		`pilotfish_upstream_in_flight{upstream="10.0.0.1:80"}`:          3,
		`pilotfish_upstream_stalled{upstream="10.0.0.1:80"}`:            7,
		`pilotfish_upstream_running{upstream="10.0.0.1:80"}`:            5,
		`pilotfish_upstream_cores{upstream="10.0.0.1:80"}`:              4,
		`pilotfish_upstream_cached_projects{upstream="10.0.0.1:80"}`:    6,
		`pilotfish_upstream_draining{upstream="10.0.0.1:80"}`:           1,
		`pilotfish_upstream_idle_connections{upstream="10.0.0.1:80"}`:   0,
		`pilotfish_upstream_cores{upstream="10.0.0.2:80"}`:              0,
		`pilotfish_upstream_cached_projects{upstream="10.0.0.2:80"}`:    0,
		`pilotfish_upstream_draining{upstream="10.0.0.2:80"}`:           0,
		`pilotfish_upstream_idle_connections{upstream="10.0.0.2:80"}`:   9,
		`pilotfish_upstream_report_age_seconds{upstream="10.0.0.1:80"}`: 1.5,
		`pilotfish_upstream_eligible{upstream="10.0.0.1:80"}`:           1,
		`pilotfish_breaker_state{upstream="10.0.0.1:80"}`:               0,
		`pilotfish_overload_level{upstream="10.0.0.1:80"}`:              1,

		`pilotfish_upstream_suspect{upstream="10.0.0.1:80"}`:     0,
		`pilotfish_upstream_implausible{upstream="10.0.0.1:80"}`: 1,

		`pilotfish_upstream_in_flight{upstream="10.0.0.2:80"}`:   1,
		`pilotfish_upstream_suspect{upstream="10.0.0.2:80"}`:     1,
		`pilotfish_upstream_implausible{upstream="10.0.0.2:80"}`: 0,
		`pilotfish_upstream_eligible{upstream="10.0.0.2:80"}`:    0,
		`pilotfish_breaker_state{upstream="10.0.0.2:80"}`:        2,
		`pilotfish_overload_level{upstream="10.0.0.2:80"}`:       0.25,

		`pilotfish_mode{upstream="10.0.0.1:80"}`: 3,
		`pilotfish_mode{upstream="10.0.0.2:80"}`: 0,
		"pilotfish_fleet_mode":                   2,
		"pilotfish_first_byte_slope_seconds":     0.25,
		"pilotfish_first_deadline_seconds":       90,
		"pilotfish_backlog_imbalance":            1, // one of two has all the jobs

		"pilotfish_discovery_age_seconds":                  90,
		`pilotfish_discovery_sets_total{result="applied"}`: 4,
		`pilotfish_discovery_sets_total{result="refused"}`: 2,
		"pilotfish_discovery_errors_total":                 1,
		"pilotfish_body_bytes":                             4096,
		"pilotfish_body_bytes_limit":                       8192,
		"pilotfish_head_bytes":                             512,
		"pilotfish_head_bytes_limit":                       1024,
		"pilotfish_heads_refused_total":                    6,
		"pilotfish_queue_bytes":                            100,
		"pilotfish_queue_bytes_limit":                      200,
		"pilotfish_queue_jobs_limit":                       50,
		`pilotfish_connections{port="jobs"}`:               2,
		`pilotfish_connections_limit{port="jobs"}`:         4096,
		"pilotfish_queue_limited_jobs":                     5,

		"pilotfish_fleet_full":                                   1.25,
		`pilotfish_fleet_upstreams_needed{to_keep="flat"}`:       7,
		`pilotfish_fleet_upstreams_needed{to_keep="first_byte"}`: 5,
		`pilotfish_capture_jobs_total{result="written"}`:         11,
		`pilotfish_capture_jobs_total{result="lost"}`:            3,
	}
	assert.Equal(t, want, lived(t, m))
	assert.Equal(t, want, lived(t, m), "a scrape changed something")

	state = Live{Discovery: Discovery{Age: -1}}
	assert.Equal(t, []string{
		"pilotfish_backlog_imbalance",
		"pilotfish_body_bytes",
		"pilotfish_body_bytes_limit",
		`pilotfish_capture_jobs_total{result="lost"}`,
		`pilotfish_capture_jobs_total{result="written"}`,
		"pilotfish_discovery_errors_total",
		`pilotfish_discovery_sets_total{result="applied"}`,
		`pilotfish_discovery_sets_total{result="refused"}`,
		"pilotfish_fleet_mode",
		"pilotfish_head_bytes",
		"pilotfish_head_bytes_limit",
		"pilotfish_heads_refused_total",
		"pilotfish_queue_bytes",
		"pilotfish_queue_bytes_limit",
		"pilotfish_queue_jobs_limit",
		"pilotfish_queue_limited_jobs",
	}, slices.Sorted(maps.Keys(lived(t, m))), "after the upstreams left")
}

func TestTheSourceIsAskedForTheInstantOfTheScrape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMetrics()
		var asked []time.Time
		m.SetSource(func(now time.Time) Live {
			asked = append(asked, now)
			return Live{}
		})
		start := time.Now()
		series(t, m.registry)
		time.Sleep(time.Minute)
		series(t, m.registry)
		assert.Equal(t, []time.Time{start, start.Add(time.Minute)}, asked)
	})
}

func TestAnAddressThatIsNotTextFailsTheScrapeNotTheProcess(t *testing.T) {
	m := newMetrics()
	m.SetSource(func(time.Time) Live {
		return Live{Upstreams: []pool.State{{Upstream: at("\xff:80")}, {Upstream: at("u:1"), InFlight: 3}}}
	})
	families, err := m.registry.Gather()
	require.ErrorContains(t, err, "not valid UTF-8")
	for _, f := range families {
		if f.GetName() == "pilotfish_upstream_in_flight" {
			require.Len(t, f.Metric, 1)
			assert.Equal(t, 3.0, f.Metric[0].GetGauge().GetValue())
			return
		}
	}
	t.Error("the good upstream is missing")
}
