package capacity

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// steady needs so many cores for so many minutes, with two jobs a second.
func steady(l *Load, from time.Duration, minutes int, cores float64) time.Duration {
	for range minutes * 60 {
		l.Add(from, time.Duration(cores/2*float64(time.Second)))
		l.Add(from, time.Duration(cores/2*float64(time.Second)))
		from += time.Second
	}
	return from
}

var bound = Bound{FirstByte: 3 * time.Second, Unloaded: time.Second}

// Ten minutes that need 2 cores, and one that needs 30.
func TestAdvice(t *testing.T) {
	l := NewLoad(time.Second)
	at := steady(l, 0, 10, 2)
	for range 60 { // 30 jobs of a second each
		for range 30 {
			l.Add(at, time.Second)
		}
		at += time.Second
	}
	a, err := Advise(l, Fleet{Upstreams: 2, Cores: 20}, bound)
	require.NoError(t, err)
	assert.InDelta(t, 3000.0/3000, a.CoreSecondsPerJob, 0.01)
	assert.InDelta(t, 20, a.JobsPerSecond, 0.2)
	assert.Equal(t, 660.0, a.CoveredSeconds)
	assert.InDelta(t, 1.5, a.Now.Full, 1e-9)
	assert.InDelta(t, 1.5, a.Busiest.Full, 1e-9)
	assert.Equal(t, 600.0, a.Busiest.Seconds)
	assert.Equal(t, 30.0, a.Busiest.JobsPerSecond)

	// 30 cores and 2.33 times their root are 42.8.
	assert.Equal(t, 5, a.Flat.Upstreams)
	assert.Equal(t, 3, a.Flat.Change)
	assert.InDelta(t, 30.0/50, a.Flat.Full, 1e-9)
	assert.Equal(t, 1.0, a.Flat.FirstByteSeconds, "nobody waits")
	// 30 cores do it without a wait, 20 would leave 600 core-seconds over, 30 s for all of them.
	assert.Equal(t, 3, a.Bounded.Upstreams)
	b := bound
	b.FirstByte = 31 * time.Second
	a, err = Advise(l, Fleet{Upstreams: 2, Cores: 20}, b)
	require.NoError(t, err)
	assert.Equal(t, 2, a.Bounded.Upstreams)
	assert.Zero(t, a.Bounded.Change)
	assert.InDelta(t, 31, a.Bounded.FirstByteSeconds, 1e-9)
	assert.InDelta(t, 1.5, a.Bounded.Full, 1e-9)

	b.Unloaded = time.Minute
	a, err = Advise(l, Fleet{Upstreams: 2, Cores: 20}, b)
	require.NoError(t, err)
	assert.Nil(t, a.Bounded, "no fleet is fast enough")
}

// The busiest minute has the most work, not the most jobs.
func TestTheBusiestMinuteIsByWork(t *testing.T) {
	l := NewLoad(time.Second)
	for second := range 60 {
		at := time.Duration(second) * time.Second
		for range 5 {
			l.Add(at, 10*time.Millisecond)
		}
		l.Add(at+time.Minute, time.Second)
	}
	a, err := Advise(l, Fleet{Upstreams: 1, Cores: 4}, bound)
	require.NoError(t, err)
	assert.Equal(t, 60.0, a.Busiest.Seconds)
	assert.InDelta(t, 0.25, a.Busiest.Full, 1e-9)
}

// A long job needs one core for long, not many for a moment.
func TestALongJobNeedsOneCore(t *testing.T) {
	l := NewLoad(time.Second)
	l.Add(1500*time.Millisecond, time.Hour)
	l.Add(10*time.Second, time.Second/2)
	assert.InDeltaSlice(t, []float64{0, 0.5, 1, 1, 1, 1, 1, 1, 1, 1, 1.5}, l.cores[:11], 1e-9)
	assert.Equal(t, 11, l.arrivals())
	assert.Len(t, l.minutes(), 1)
	assert.Zero(t, l.wait(2))
	assert.InDelta(t, 0.5, l.wait(1), 1e-9)
}

// What is kept is bounded: longer loads have longer steps, and lose no work.
func TestMemoryIsBounded(t *testing.T) {
	l := NewLoad(time.Second)
	n := 0
	for at := time.Duration(0); at < 100*24*time.Hour; at += time.Hour {
		l.Add(at, 30*time.Minute)
		n++
	}
	assert.LessOrEqual(t, len(l.cores), maxSteps)
	assert.Equal(t, 128*time.Second, l.step)
	assert.InEpsilon(t, float64(n)*1800, sum(l.cores)*l.step.Seconds(), 0.001)
	assert.Equal(t, float64(n), sum(l.jobs))
	l.Add(0, math.MaxInt64/4)
	assert.LessOrEqual(t, len(l.cores), maxSteps)
}

func TestTooLittleToTell(t *testing.T) {
	full := NewLoad(time.Second)
	full.Add(0, time.Second)
	for _, c := range []struct {
		load  *Load
		fleet Fleet
	}{
		{NewLoad(time.Second), Fleet{2, 8}}, {full, Fleet{0, 8}}, {full, Fleet{2, 0}}, {full, Fleet{2, math.NaN()}},
	} {
		_, err := Advise(c.load, c.fleet, bound)
		require.ErrorIs(t, err, ErrUnknown)
	}
	a, err := Advise(full, Fleet{1, 4}, bound)
	require.NoError(t, err)
	assert.InDelta(t, 0.25, a.Now.Full, 1e-9, "a load of a second has no minute: it counts as it is")
}

// The recorder keeps an hour in steps of ten seconds.
func TestRecorder(t *testing.T) {
	var r Recorder
	begin := time.Unix(1000, 0)
	for i := range 2 * 3600 {
		r.Note(begin.Add(time.Duration(i)*time.Second), float64(i/3600+1), 3)
	}
	l, from := r.Load()
	assert.Len(t, l.cores, 359+1)
	assert.Equal(t, 30.0, l.jobs[0])
	assert.Equal(t, 1.0, l.cores[0])
	assert.Equal(t, 2.0, l.cores[len(l.cores)-1])
	assert.Equal(t, begin.Add(7200*time.Second-10*time.Second-time.Hour), from)

	r.Note(begin.Add(7200*time.Second+35*time.Second), 9, 3) // the process stood still
	l, _ = r.Load()
	assert.Equal(t, 2.0, l.cores[len(l.cores)-1], "it was as before")
	r.Note(begin.Add(24*time.Hour), 9, 3)
	l, _ = r.Load()
	assert.Empty(t, l.cores)
}
