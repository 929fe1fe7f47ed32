package quality

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

// A job counts at the upstream that responded, by what that reports or else by what was believed; a job without data
// or response does not count.
func TestFinds(t *testing.T) {
	m := New(start)
	states := []pool.State{state("a:1"), state("b:1")}
	m.Advance(start, Moment{Upstreams: states})
	at := func(address string, c selection.Cache, hint *pool.Hint, shadow string, there selection.Cache) record.Attempt {
		return record.Attempt{Upstream: address, Outcome: pool.Answered, Cache: c, Hint: hint, Why: pool.Why{Shadow: shadow, ShadowCache: there}}
	}
	miss, silent := &pool.Hint{Known: true}, &pool.Hint{}
	for _, j := range []struct {
		key      uint64
		c        intake.Completeness
		attempts []record.Attempt
	}{
		{1, intake.Complete, []record.Attempt{at("a:1", selection.Cached, silent, "b:1", selection.NotCached)}},
		{1, intake.Complete, []record.Attempt{at("b:1", selection.Cached, nil, "", 0), at("a:1", selection.AssumedCached, miss, "a:1", selection.AssumedCached)}},
		{1, intake.Partial, []record.Attempt{at("a:1", selection.NotCached, nil, "", 0)}},
		{1, intake.Complete, []record.Attempt{at("b:1", selection.Cached, nil, "a:1", selection.Cached)}},
		{0, intake.Complete, []record.Attempt{at("a:1", selection.Cached, nil, "", 0)}},
		{1, intake.Absent, []record.Attempt{at("a:1", selection.Cached, nil, "", 0)}},
		{1, intake.Absent, nil},
	} {
		m.Ended(start, Default(), &record.Job{Facts: intake.Facts{Key: j.key}, Completeness: j.c, Attempts: j.attempts})
	}
	v := m.View(start.Add(time.Second), states)
	assert.Equal(t, Finds{Jobs: 4, Found: 2, Shadowed: 3, ShadowFound: 2}, v.Fleet.Windows[0].All.Data)
	assert.Equal(t, Finds{Jobs: 3, Found: 1, Shadowed: 2, ShadowFound: 1}, v.Upstreams[0].MinuteData)
	assert.Equal(t, Finds{Jobs: 1, Found: 1, Shadowed: 1, ShadowFound: 1}, v.Upstreams[1].MinuteData)
	for i := range 3 * time.Minute / time.Second {
		m.Advance(start.Add(i*time.Second), Moment{Upstreams: states})
	}
	points := m.Points(start.Add(3 * time.Minute))
	require.NotEmpty(t, points)
	assert.Equal(t, []float64{0.5, 2. / 3}, []float64{points[0].Found, points[0].ShadowFound})
	assert.Equal(t, []float64{-1, -1}, []float64{points[len(points)-1].Found, points[len(points)-1].ShadowFound}, "without jobs")
}
