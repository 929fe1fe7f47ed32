package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/lab/trace"
)

// restart returns a rolling restart: one upstream a minute, each down for 20 s.
func restart(first time.Duration) Stops {
	return Stops{First: first, Every: time.Minute, Away: 20 * time.Second}
}

// A response that has begun is truncated when its server stops. The submitter keeps what was
// received.
func TestAResponseThatHasBegunIsLost(t *testing.T) {
	cfg := setup(t, "random", "none", 1, 1)
	cfg.Fleet.Stops = restart(40 * time.Second)
	got := played(t, cfg, trace.Job{Operators: 2, Output: 100})[1]
	assert.Equal(t, Lost, got.Outcome)
	assert.Equal(t, 1, got.Attempts)
	assert.Equal(t, intake.Partial, got.Completeness)
	assert.Equal(t, []time.Duration{2 * time.Second, 40 * time.Second}, []time.Duration{got.FirstByte, got.LastByte})
}

// A server with a full queue accepts no connections: a job then fails after the connect timeout.
func TestAFullServerAcceptsNoConnection(t *testing.T) {
	cfg := setup(t, "random", "none", 1, 1)
	cfg.Fleet.Backlog = 1
	got := played(t, cfg,
		trace.Job{Operators: 10}, trace.Job{Operators: 5}, trace.Job{Operators: 5}, // one runs, two are stalled
		trace.Job{Operators: 5, Offset: 1},
		trace.Job{Operators: 5, Offset: 10.25})
	assert.Greater(t, got[4].Attempts, 5, "it tries again until one more runs")
	assert.Greater(t, got[4].Wait, 19*time.Second)
	assert.Equal(t, Done, got[5].Outcome)
	assert.Equal(t, 9750*time.Millisecond, got[5].Wait, "it comes when one is stalled")
}

// In a rolling restart every upstream stops once. Its running jobs are retried elsewhere; its
// cache is lost.
func TestRollingRestart(t *testing.T) {
	cfg := setup(t, "bounded-hash", "none", 3, 4)
	cfg.Fleet.Stops = restart(130 * time.Second)
	var jobs []trace.Job
	for at := range 600 {
		jobs = append(jobs, trace.Job{Offset: float64(at), Project: "p", Version: 1, Load: 1, Bytes: 1, Operators: 0.1})
	}
	lost := 0
	totals := run(t, cfg, slices.Values(jobs), func(r *Result) {
		if r.Outcome != Done {
			lost++
		}
	})
	assert.Equal(t, 3, totals.Stops)
	assert.Zero(t, lost)
	assert.GreaterOrEqual(t, totals.Fetches, 2, "at its own upstream, and at the one that replaced it")
}

// If ends of lives are known, sidecars know them until the upstream has restarted.
func TestEndsAreKnown(t *testing.T) {
	cfg := setup(t, "expected", "none", 2, 1)
	cfg.Fleet.Stops = restart(90 * time.Second)
	cfg.Fleet.Stops.Known = true
	cfg.Observe = func(*Result) {}
	cfg.Source = slices.Values([]trace.Job{{Offset: 1}, {Offset: 130}})
	w := newWorld(cfg)
	ends := func() (after []time.Duration) {
		for _, u := range w.sidecars[0].pool.States(w.time(w.now)) {
			left := time.Duration(-1)
			if !u.StopsAt.IsZero() {
				left = u.StopsAt.Sub(w.time(0))
			}
			after = append(after, left)
		}
		return after
	}
	assert.Equal(t, []time.Duration{90 * time.Second, 150 * time.Second}, ends())
	require.NoError(t, w.loop(t.Context()))
	assert.Equal(t, []time.Duration{-1, 150 * time.Second}, ends())
}

// Results from before the end of the warm-up are not counted.
func TestWarmUpDoesNotCount(t *testing.T) {
	var jobs []trace.Job
	for at := range 100 {
		jobs = append(jobs, trace.Job{Offset: float64(at), Project: "p", Version: int64(1 + at/25), Load: 1, Bytes: 1, Operators: 0.5})
	}
	cfg := setup(t, "random", "none", 1, 4)
	cfg.WarmUp = 50 * time.Second
	seen := 0
	totals := run(t, cfg, slices.Values(jobs), func(r *Result) {
		seen++
		assert.GreaterOrEqual(t, r.Arrived, 50*time.Second)
	})
	assert.Equal(t, 50, seen)
	assert.Equal(t, 100, totals.Ended)
	assert.Equal(t, 2, totals.Fetches, "of four versions")
	assert.InDelta(t, 2+50*0.5, totals.CoreSeconds, 1)
	assert.InDelta(t, 49.5, totals.Length.Seconds(), 1.1)
}

// Sidecars that share reports receive them at the same instant.
func TestReportsTogether(t *testing.T) {
	for _, together := range []bool{false, true} {
		cfg := setup(t, "random", "none", 2, 1)
		cfg.Sidecars.Count, cfg.Sidecars.Together, cfg.Sidecars.Lag = 3, together, time.Second
		cfg.Source, cfg.Observe = slices.Values([]trace.Job{{Offset: 20, Operators: 1}}), func(*Result) {}
		w := newWorld(cfg)
		require.NoError(t, w.loop(t.Context()))
		age := func(i int) float64 { return w.sidecars[i].pool.States(w.time(w.now))[0].ReportAge }
		assert.Equal(t, together, age(0) == age(1) && age(1) == age(2))
		assert.GreaterOrEqual(t, age(0), 1.0, "a report is as old as it takes to arrive")
	}
}

// Of three upstreams, two live for a minute, stop at the same instant, and are down for 5 to 10 s. No life ends later
// than the catalogue states.
func TestPreemptibleLives(t *testing.T) {
	cfg := setup(t, "random", "none", 3, 1)
	cfg.Fleet.Stops = Stops{First: time.Minute, Upstreams: 2, Away: 5 * time.Second, AwayMost: 10 * time.Second, Again: time.Minute, Early: 0.3}
	cfg.Observe, cfg.Source = func(*Result) {}, slices.Values([]trace.Job{{Offset: 3600}})
	w := newWorld(cfg)
	began, lives, early := make([]time.Duration, 3), 0, 0
	for i, s := range w.servers {
		var look func()
		look = func() {
			if up := s.up; up != (began[i] >= 0) {
				if up {
					began[i] = w.now
				} else {
					lasted := w.now - began[i]
					lives++
					if lasted < 59*time.Second {
						early++
					}
					assert.LessOrEqual(t, lasted, 61*time.Second)
					began[i] = -1
				}
			}
			w.events.Add(w.now+time.Second, rankFinish, look)
		}
		w.events.Add(time.Second, rankFinish, look)
	}
	require.NoError(t, w.loop(t.Context()))
	assert.Zero(t, began[2], "it never stops")
	assert.InDelta(t, 2*3600/(67.5-0.3*30), lives, 10)
	assert.Equal(t, lives, w.count().Stops)
	assert.InDelta(t, 0.3, float64(early)/float64(lives), 0.12)
}
