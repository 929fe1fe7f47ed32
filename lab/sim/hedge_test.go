package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// A copy is sent to an idle upstream, and the attempt that ends first counts. If no upstream is idle, there is no
// copy.
func TestHedges(t *testing.T) {
	cfg := setup(t, "least-in-flight", "none", 2, 1)
	cfg.Sidecars.Hedge = true
	cfg.Fleet.Unlike = Unlike{Upstreams: 1, Cores: 1, Speed: 10}
	w := newWorld(cfg)
	w.cfg.Source = slices.Values([]trace.Job{{Operators: 10}, {Offset: 0.5, Operators: 10}, {Offset: 30, Operators: 10}})
	var ends []time.Duration
	w.cfg.Observe = func(r *Result) {
		require.Equal(t, Done, r.Outcome)
		ends = append(ends, r.Arrived+r.LastByte)
	}
	require.NoError(t, w.loop(t.Context()))
	totals := w.count()
	assert.Equal(t, 2, totals.Hedged, "the second job finds no idle upstream")
	assert.Equal(t, 3, totals.Ended)
	assert.Zero(t, totals.InFlight)
	assert.Equal(t, []time.Duration{time.Second, 31 * time.Second}, []time.Duration{ends[0], ends[2]}, "at the fast one")
}

// Each job ends once, also if upstreams that run its copies stop, or people disconnect.
func TestHedgedJobsEndOnce(t *testing.T) {
	cfg := setup(t, "expected", "none", 4, 2)
	cfg.Sidecars.Hedge, cfg.Sidecars.Count, cfg.Sidecars.Wait = true, 3, time.Minute
	cfg.Sidecars.Leave, cfg.Sidecars.Again = 3*time.Second, 2
	cfg.Fleet.Stops = Stops{First: 40 * time.Second, Every: 10 * time.Second, Away: 5 * time.Second, Again: 50 * time.Second}
	cfg.Source = poisson{rng: rand.New(rand.NewPCG(4, 4)), rate: 3, work: 2, n: 2000, withPriority: true}.all
	seen, outcomes := map[int64]bool{}, map[Outcome]int{}
	cfg.Observe = func(r *Result) {
		require.False(t, seen[r.Number])
		seen[r.Number] = true
		outcomes[r.Outcome]++
	}
	totals, err := Run(t.Context(), cfg)
	require.NoError(t, err)
	assert.Equal(t, []int{2000, 2000, 0, 0}, []int{len(seen), totals.Ended, totals.InFlight, totals.Waiting})
	assert.Greater(t, totals.Hedged, 50)
	assert.Greater(t, totals.Stops, 20)
	assert.Greater(t, outcomes[Done], 1500)
	assert.Positive(t, outcomes[Left])
}

// A person sends a job again after 3 s, and gives up after the second attempt. The wait counts from the
// first.
func TestImpatience(t *testing.T) {
	cfg := setup(t, "random", "none", 1, 1)
	cfg.Sidecars.Leave, cfg.Sidecars.Again = 3*time.Second, 1
	high := func(offset float64) trace.Job {
		return trace.Job{Offset: offset, Operators: 1, Output: 1, Priority: selection.High, Timeouts: trace.Timeouts{Queue: 60}}
	}
	got := played(t, cfg, trace.Job{Operators: 6}, high(1), trace.Job{Offset: 10, Operators: 20}, high(11))
	assert.Equal(t, Done, got[2].Outcome)
	assert.Equal(t, []time.Duration{5 * time.Second, 6 * time.Second, 7 * time.Second}, []time.Duration{got[2].Wait, got[2].FirstByte, got[2].LastByte})
	assert.Equal(t, Left, got[4].Outcome)
	assert.Equal(t, time.Minute, got[4].Wait, "it waited as long as it may")
	assert.Equal(t, 6*time.Second, got[4].LastByte)
	assert.Equal(t, Done, got[3].Outcome)
}
