package metrics

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

func TestReportFailuresLiveAsLongAsTheirUpstream(t *testing.T) {
	m := newMetrics()
	const a, b = `pilotfish_report_failures_total{upstream="a:1"}`, `pilotfish_report_failures_total{upstream="b:1"}`
	failures := func() map[string]float64 {
		found := map[string]float64{}
		all := series(t, m.registry)
		for _, name := range []string{a, b} {
			if v, ok := all[name]; ok {
				found[name] = v
			}
		}
		return found
	}
	m.ReportFailed("a:1")
	assert.Empty(t, failures())
	m.Joined([]string{"a:1", "b:1"})
	m.ReportFailed("a:1")
	m.ReportFailed("a:1")
	assert.Equal(t, map[string]float64{a: 2, b: 0}, failures())
	m.Left([]string{"a:1"})
	m.ReportFailed("a:1") // of a poll that was under way
	assert.Equal(t, map[string]float64{b: 0}, failures())
	m.Joined([]string{"a:1"})
	assert.Equal(t, map[string]float64{a: 0, b: 0}, failures())
}

// The number of series is bounded by the upstreams there are now, whatever
// submitters send and however often upstreams come and go.
func TestSeriesAreBounded(t *testing.T) {
	m := newMetrics()
	var upstreams []quality.Upstream
	m.SetSource(func(time.Time) Live { return Live{Upstreams: upstreams} })
	count := func() (n int) {
		families, err := m.registry.Gather()
		assert.NoError(t, err)
		for _, f := range families {
			n += len(f.Metric)
		}
		return n
	}
	before := count()
	for i := range 1000 {
		address := fmt.Sprintf("10.0.%d.%d:80", i/250, i%250)
		m.Joined([]string{address})
		upstreams = []quality.Upstream{rowOf(address)}
		m.ReportFailed(address)
		m.Left([]string{address})
	}
	upstreams = nil
	for i := range 100_000 {
		text := strconv.Itoa(i)
		m.Ended(&record.Job{
			ID: text, Method: text, Path: text, Peer: text, Unread: text, Err: text,
			Facts: intake.Facts{Project: text, Session: text, Priority: selection.Priority(i % 2)},
			Read:  intake.Reading(i % intake.Readings), Outcome: intake.Outcome(i % intake.Outcomes),
			Completeness: intake.Completeness(i % intake.Completenesses), Shedding: intake.Shedding(i % intake.Sheddings),
			Attempts: []record.Attempt{{
				Upstream: fmt.Sprintf("10.0.0.%d:80", i%250), Outcome: pool.Outcome(i % pool.Outcomes), Cache: selection.Cache(i % 3),
				Hint: &pool.Hint{Known: true, Cached: i%2 == 0}, Err: text,
			}},
		})
	}
	assert.Equal(t, before, count())
	assert.Empty(t, m.byUpstream)
}
