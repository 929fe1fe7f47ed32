package overload

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// stalled is a sample that tells nothing else.
func stalled(n float64) Sample {
	return Sample{Stalled: n, Wait: math.NaN(), Response: math.NaN()}
}

func detector(t *testing.T, name string) Detector {
	t.Helper()
	build, err := New(name, 100)
	require.NoError(t, err)
	return build()
}

// TestThresholdDoesNotFlap: a backlog that swings by 5 % around the limit
// trips the breaker once, and it stays so until the backlog has gone.
func TestThresholdDoesNotFlap(t *testing.T) {
	d, level, flips := detector(t, "threshold"), Level(1), 0
	for k := range 1000 {
		next := d.Observe(stalled(100 + 5*math.Sin(float64(k))))
		if next != level {
			flips++
		}
		level = next
	}
	assert.Equal(t, 1, flips)
	assert.EqualValues(t, 0, d.Observe(stalled(80)))
	assert.EqualValues(t, 0, d.Observe(stalled(math.NaN())), "nothing known changes nothing")
	assert.EqualValues(t, 1, d.Observe(stalled(79)))
	assert.EqualValues(t, 1, d.Observe(stalled(100)), "at the limit is not above it")
}

// TestDagorShedsLowFirst: under lasting overload all low projects are refused
// before any high one is, and some high ones always pass as probes.
func TestDagorShedsLowFirst(t *testing.T) {
	d, lowGoneAt := detector(t, "dagor"), 0
	var level Level
	for report := 1; report <= 500; report++ {
		level = d.Observe(stalled(101))
		if low := admitted(level, selection.Low); low > 0 {
			require.EqualValues(t, 1, admitted(level, selection.High), "report %d", report)
		} else if lowGoneAt == 0 {
			lowGoneAt = report
		}
	}
	assert.Equal(t, 14, lowGoneAt, "0.95 to the 14th is below a half")
	assert.Positive(t, admitted(level, selection.High), "no probe passes")
	for range 98 {
		level = d.Observe(stalled(100))
	}
	assert.EqualValues(t, 1, level, "recovered by a hundredth a report")
}

// TestDagorSettles: against an upstream whose backlog follows what is
// admitted, the level comes to swing around what it can take.
func TestDagorSettles(t *testing.T) {
	const capacity = 0.7 // of what is offered
	d, level, backlog := detector(t, "dagor"), Level(1), 0.0
	for report := range 3000 {
		backlog = math.Max(0, backlog+100*(float64(level)-capacity))
		level = d.Observe(stalled(backlog))
		if report > 500 {
			require.InDelta(t, capacity, float64(level), 0.3)
		}
	}
}

// TestDagorTakesTheWaitWhereReported, and the stalled joblets when it must.
func TestDagorTakesTheWaitWhereReported(t *testing.T) {
	for _, c := range []struct {
		config DagorConfig
		sample Sample
		want   Level
	}{
		{DagorConfig{Limit: 100}, Sample{Stalled: 1e3, Wait: 9}, 1},
		{DagorConfig{Limit: 100}, Sample{Stalled: 0, Wait: 11}, 0.95},
		{DagorConfig{Limit: 100, WaitLimit: 20}, Sample{Stalled: 1e3, Wait: 11}, 1},
		{DagorConfig{Limit: 100, IgnoreWait: true}, Sample{Stalled: 1e3, Wait: 9}, 0.95},
		{DagorConfig{Limit: 100, IgnoreWait: true}, Sample{Stalled: 0, Wait: 11}, 1},
		{DagorConfig{Limit: 100}, Sample{Stalled: 101, Wait: math.NaN()}, 0.95},
	} {
		build, err := NewDagor(c.config)
		require.NoError(t, err)
		assert.Equal(t, c.want, build().Observe(c.sample), "%+v of %+v", c.config, c.sample)
	}
}

// backlogBorne is the highest backlog that an adaptive detector lets pass.
func backlogBorne(d *Adaptive) float64 {
	borne := 0.0
	for n := 1.0; n < 500; n++ {
		probe := *d
		probe.tripped = false
		if probe.Observe(stalled(n)) == 1 {
			borne = n
		}
	}
	return borne
}

// TestAdaptiveFollowsTheResponse: the backlog it bears grows while responses
// are fast, to four times the limit, and shrinks while they are slow, to a tenth.
func TestAdaptiveFollowsTheResponse(t *testing.T) {
	d := detector(t, "adaptive").(*Adaptive)
	assert.EqualValues(t, 100, backlogBorne(d))
	for range 10 {
		d.Observe(Sample{Response: 12})
	}
	assert.EqualValues(t, 120, backlogBorne(d))
	for range 1000 {
		d.Observe(Sample{Response: 12})
	}
	assert.EqualValues(t, 400, backlogBorne(d))
	d.Observe(stalled(0))
	assert.InDelta(t, 400, backlogBorne(d), 0, "no response time, no change")
	for range 10 {
		d.Observe(Sample{Response: 31})
	}
	assert.InDelta(t, math.Floor(400*math.Pow(0.9, 10)), backlogBorne(d), 0)
	for range 1000 {
		d.Observe(Sample{Response: 31})
	}
	assert.EqualValues(t, 10, backlogBorne(d))
}

// TestAdaptiveFindsWhatAnUpstreamBears: where responses slow down with the
// backlog, the threshold ends near the backlog that meets the target.
func TestAdaptiveFindsWhatAnUpstreamBears(t *testing.T) {
	for _, bears := range []float64{20, 60, 250} { // joblets ahead of a job that still make 30 s
		d, level, backlog := detector(t, "adaptive").(*Adaptive), Level(1), 0.0
		sum := 0.0
		for report := range 4000 {
			if level > 0 {
				backlog += 5
			} else {
				backlog = math.Max(0, backlog-5)
			}
			level = d.Observe(Sample{Stalled: backlog, Wait: math.NaN(), Response: 30 * backlog / bears})
			if report >= 2000 {
				sum += d.threshold
			}
		}
		assert.InEpsilon(t, bears, sum/2000, 0.35, "bears %v", bears)
	}
}
