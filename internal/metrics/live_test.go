package metrics

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/internal/record"
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

func rowOf(address string) quality.Upstream {
	return quality.Upstream{State: pool.State{Upstream: at(address)}}
}

// everything returns a state with every figure set.
func everything(time.Time) Live {
	return Live{
		View: quality.View{Panic: true, Fleet: quality.Status{Mode: quality.QueueGrows, DeadlineSeconds: new(90.0)},
			Capacity: &quality.Advice{Full: 1.25, Needed: 7, ForTarget: new(9)},
			Upstreams: []quality.Upstream{
				{Mode: quality.JobsFail, State: pool.State{
					Upstream: at("a:1"), Eligible: true, InFlight: 3, Cores: 4, ReportAge: 1.5, Running: 5, Stalled: 7, Drained: true, Level: 1,
					Implausible: "1e+09 busy cores",
				}},
				{State: pool.State{
					Upstream: at("b:1"), InFlight: 1, Breaker: health.Status{State: health.Open}, ReportAge: -1, Stalled: 9, Level: 0.25,
					Suspect: "2 reports in a row failed", Slow: "9 times", DownSince: time.Unix(1, 0),
				}},
			},
		},
		Discovery: Discovery{Age: 90 * time.Second, Applied: 4, Refused: 2, Failed: 1},
		Bounds:    []Bound{{Name: "body_bytes", Used: 4096, Limit: 8192}, {Name: "queue_jobs", Used: 2, Limit: 50}},
		Limited:   5,

		Planned: new(true), LogLinesLost: 9, CertificateExpires: time.Unix(1234567890, 0),
	}
}

func TestScrapeReadsLiveState(t *testing.T) {
	m := newMetrics()
	assert.Empty(t, lived(t, m), "without a source")

	state, begun := everything(time.Time{}), time.Now()
	m.SetSource(func(now time.Time) Live {
		assert.False(t, now.Before(begun), "the time of the scrape")
		return state
	})
	want := map[string]float64{
		`pilotfish_upstream_in_flight{upstream="a:1"}`:          3,
		`pilotfish_upstream_stalled{upstream="a:1"}`:            7,
		`pilotfish_upstream_running{upstream="a:1"}`:            5,
		`pilotfish_upstream_report_age_seconds{upstream="a:1"}`: 1.5,
		`pilotfish_upstream_cores{upstream="a:1"}`:              4,
		`pilotfish_upstream_draining{upstream="a:1"}`:           1,
		`pilotfish_upstream_eligible{upstream="a:1"}`:           1,
		`pilotfish_upstream_down{upstream="a:1"}`:               0,
		`pilotfish_upstream_suspect{upstream="a:1"}`:            0,
		`pilotfish_upstream_implausible{upstream="a:1"}`:        1,
		`pilotfish_upstream_slow{upstream="a:1"}`:               0,
		`pilotfish_breaker_state{upstream="a:1"}`:               0,
		`pilotfish_overload_level{upstream="a:1"}`:              1,
		`pilotfish_mode{upstream="a:1"}`:                        3,

		`pilotfish_upstream_in_flight{upstream="b:1"}`:   1,
		`pilotfish_upstream_cores{upstream="b:1"}`:       0,
		`pilotfish_upstream_draining{upstream="b:1"}`:    0,
		`pilotfish_upstream_eligible{upstream="b:1"}`:    0,
		`pilotfish_upstream_down{upstream="b:1"}`:        1,
		`pilotfish_upstream_suspect{upstream="b:1"}`:     1,
		`pilotfish_upstream_implausible{upstream="b:1"}`: 0,
		`pilotfish_upstream_slow{upstream="b:1"}`:        1,
		`pilotfish_breaker_state{upstream="b:1"}`:        2,
		`pilotfish_overload_level{upstream="b:1"}`:       0.25,
		`pilotfish_mode{upstream="b:1"}`:                 0,

		"pilotfish_fleet_upstreams":            2,
		"pilotfish_fleet_upstreams_eligible":   1,
		"pilotfish_fleet_upstreams_overloaded": 1,
		"pilotfish_fleet_upstreams_idle":       0,
		"pilotfish_fleet_backlog_imbalance":    0, // b has no report
		"pilotfish_panic_mode":                 1,
		"pilotfish_fleet_mode":                 2,
		"pilotfish_first_deadline_seconds":     90,
		"pilotfish_fleet_full":                 1.25,
		"pilotfish_fleet_upstreams_needed":     7,
		"pilotfish_fleet_upstreams_for_target": 9,
		"pilotfish_queue_limited_jobs":         5,

		"pilotfish_discovery_age_seconds":                  90,
		`pilotfish_discovery_sets_total{result="applied"}`: 4,
		`pilotfish_discovery_sets_total{result="refused"}`: 2,
		"pilotfish_discovery_errors_total":                 1,
		`pilotfish_bound_used{bound="body_bytes"}`:         4096,
		`pilotfish_bound_limit{bound="body_bytes"}`:        8192,
		`pilotfish_bound_used{bound="queue_jobs"}`:         2,
		`pilotfish_bound_limit{bound="queue_jobs"}`:        50,
		"pilotfish_planned_start":                          1,
		"pilotfish_log_lines_lost_total":                   9,
		"pilotfish_certificate_expiry_timestamp_seconds":   1234567890,
	}
	assert.Equal(t, want, lived(t, m))
	assert.Equal(t, want, lived(t, m), "a scrape changed something")

	state = Live{Discovery: Discovery{Age: -1}}
	assert.Equal(t, []string{
		"pilotfish_discovery_errors_total",
		`pilotfish_discovery_sets_total{result="applied"}`,
		`pilotfish_discovery_sets_total{result="refused"}`,
		"pilotfish_fleet_mode",
		"pilotfish_fleet_upstreams",
		"pilotfish_fleet_upstreams_eligible",
		"pilotfish_fleet_upstreams_idle",
		"pilotfish_fleet_upstreams_overloaded",
		"pilotfish_log_lines_lost_total",
		"pilotfish_panic_mode",
		"pilotfish_queue_limited_jobs",
	}, slices.Sorted(maps.Keys(lived(t, m))), "after the upstreams left")
}

// In a summary, a healthy upstream has five series. Each other upstream has, in addition, those that show
// its condition.
func TestASummaryHasWhatAlertsNeed(t *testing.T) {
	m := New(Settings{Upstreams: summary}, "1.2.3", "abc")
	m.SetSource(func(time.Time) Live {
		v := everything(time.Time{})
		healthy := pool.State{Upstream: at("c:1"), Eligible: true, Cores: 8, Running: 2, Level: 1, Breaker: health.Status{State: health.Closed}}
		v.Upstreams = append(v.Upstreams, quality.Upstream{Mode: quality.Steady, State: healthy})
		return v
	})
	m.Joined([]string{"a:1", "b:1", "c:1"})
	attempted(m, hinted("c:1"))
	attempted(m, record.Attempt{Upstream: "b:1", Outcome: pool.Refused, FirstByte: -1})
	attempted(m, record.Attempt{Upstream: "b:1", Outcome: pool.Refused, FirstByte: -1})
	of := func(address string) map[string]float64 {
		found := map[string]float64{}
		for name, value := range series(t, m.registry) {
			if short, ok := strings.CutSuffix(name, `upstream="`+address+`"}`); ok {
				found[strings.TrimPrefix(short, "pilotfish_")] = value
			}
		}
		return found
	}
	assert.Equal(t, map[string]float64{
		"report_failures_total{": 0, `upstream_attempts_total{outcome="answered",`: 1,
		"upstream_in_flight{": 0, "upstream_stalled{": 0, "upstream_report_age_seconds{": 0,
	}, of("c:1"))
	assert.Equal(t, map[string]float64{
		"report_failures_total{": 0, `upstream_attempts_total{outcome="answered",`: 0, `upstream_attempts_total{outcome="refused",`: 2,
		"upstream_in_flight{": 1, "upstream_eligible{": 0, "upstream_down{": 1, "upstream_suspect{": 1, "upstream_slow{": 1,
		"breaker_state{": 2, "overload_level{": 0.25,
	}, of("b:1"))
	assert.Equal(t, map[string]float64{
		"report_failures_total{": 0, `upstream_attempts_total{outcome="answered",`: 0,
		"upstream_in_flight{": 3, "upstream_stalled{": 7, "upstream_report_age_seconds{": 1.5, "upstream_draining{": 1, "upstream_implausible{": 1, "mode{": 3,
	}, of("a:1"))
	m.Left([]string{"b:1"})
	assert.NotContains(t, of("b:1"), `upstream_attempts_total{outcome="refused",`)
}

func TestInvalidAddressFailsTheScrape(t *testing.T) {
	m := newMetrics()
	m.SetSource(func(time.Time) Live {
		return Live{View: quality.View{Upstreams: []quality.Upstream{rowOf("\xff:80"), rowOf("u:1")}}}
	})
	families, err := m.registry.Gather()
	require.ErrorContains(t, err, "not valid UTF-8")
	for _, f := range families {
		if f.GetName() == "pilotfish_upstream_in_flight" {
			require.Len(t, f.Metric, 1)
			assert.Equal(t, "u:1", f.Metric[0].Label[0].GetValue())
			return
		}
	}
	t.Error("the good upstream is missing")
}
