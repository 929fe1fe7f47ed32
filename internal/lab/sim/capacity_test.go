package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/capacity"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/pkg/trace"
)

// Advice is checked by taking it: the simulator plays the same jobs before as many
// upstreams as advised, and must give what was promised within 10 %.

const adviceCores = 8

// demand is jobs of a second's work in the mean that come at chance, as many a second as
// rate says at each instant.
func demand(seed uint64, length time.Duration, rate func(at float64) float64) (jobs []trace.Job) {
	rng := rand.New(rand.NewPCG(seed, 7))
	for at := 0.0; ; {
		at += rng.ExpFloat64() / rate(at)
		if at >= length.Seconds() {
			return jobs
		}
		work := 0.25 + 0.75*rng.ExpFloat64()
		jobs = append(jobs, trace.Job{Offset: at, Operators: work * 0.9, Output: work * 0.1})
	}
}

// advise is what capacity says of jobs, before so many upstreams.
func advise(t *testing.T, jobs []trace.Job, upstreams int, bound time.Duration) capacity.Advice {
	t.Helper()
	l := capacity.NewLoad(time.Second)
	var unloaded []float64
	for i := range jobs {
		l.Add(duration(jobs[i].Offset), duration(jobs[i].Work()))
		unloaded = append(unloaded, jobs[i].Operators)
	}
	slices.Sort(unloaded)
	a, err := capacity.Advise(l, capacity.Fleet{Upstreams: upstreams, Cores: float64(upstreams * adviceCores)},
		capacity.Bound{FirstByte: bound, Unloaded: duration(unloaded[len(unloaded)/2])})
	require.NoError(t, err)
	return a
}

// servedBy is how so many upstreams serve jobs: each job's result in order of its
// arrival, and how full they were in the busiest minute.
func servedBy(t *testing.T, jobs []trace.Job, upstreams int) (all []Result, full float64) {
	t.Helper()
	c := setup(t, "expected", "none", upstreams, adviceCores)
	c.Sidecars.Hints = true
	list := trace.List(jobs)
	c.Source = &list
	c.Observe = func(r *Result) { all = append(all, *r) }
	busy := map[int]float64{}
	c.SampleEvery = 100 * time.Millisecond
	c.Sample = func(s *Sample) {
		for _, n := range s.Busy {
			busy[int(s.At/time.Minute)] += float64(n) / 600 / float64(upstreams*adviceCores)
		}
	}
	_, err := Run(t.Context(), c)
	require.NoError(t, err)
	for _, share := range busy {
		full = max(full, share)
	}
	slices.SortFunc(all, func(a, b Result) int { return cmp.Compare(a.Arrived, b.Arrived) })
	return all, full
}

// modesOf are the modes that the sidecar would tell of these jobs.
func modesOf(all []Result) (modes []quality.Mode) {
	var jobs []quality.Job
	for i := range all {
		r := &all[i]
		jobs = append(jobs, quality.Job{
			Outcome: intake.Answered, Completeness: r.Completeness, Arrived: epoch.Add(r.Arrived),
			FirstByte: r.FirstByte, LastByte: r.LastByte, Waited: -1,
		})
	}
	for _, c := range quality.Trial(jobs, func(int) time.Duration { return 0 }) {
		modes = append(modes, c.To)
	}
	return modes
}

// trendOf is how times to first byte change, as it is judged at an instant.
func trendOf(all []Result, at time.Duration) quality.Trend {
	heard := slices.DeleteFunc(slices.Clone(all), func(r Result) bool { return r.Arrived+r.FirstByte > at })
	slices.SortFunc(heard, func(a, b Result) int { return cmp.Compare(a.Arrived+a.FirstByte, b.Arrived+b.FirstByte) })
	m := quality.New(epoch)
	for i := range heard {
		arrived := epoch.Add(heard[i].Arrived)
		m.Began(arrived.Add(heard[i].FirstByte), quality.FirstByte{Arrived: arrived, Claimed: arrived})
	}
	m.Advance(epoch.Add(at))
	return m.Status("").Trend
}

// A fleet of the size advised for mode 1 stays in it, and is as full as promised. One
// that is smaller than its load does not stay.
func TestAdviceForModeOneHolds(t *testing.T) {
	for _, rate := range []float64{20, 60} {
		jobs := demand(uint64(rate), 20*time.Minute, func(float64) float64 { return rate })
		a := advise(t, jobs, 3, 3*time.Second)
		assert.InEpsilon(t, 3*adviceCores, a.JobsPerSecond, 0.1, "jobs are a core-second long")

		all, full := servedBy(t, jobs, a.Flat.Upstreams)
		t.Logf("%v jobs a second: %d upstreams; full %.2f, promised %.2f; modes %v", rate, a.Flat.Upstreams, full, a.Flat.Full, modesOf(all))
		assert.InEpsilon(t, a.Flat.Full, full, 0.1)
		assert.Equal(t, []quality.Mode{quality.Flat}, modesOf(all))
		assert.InEpsilon(t, a.Flat.FirstByteSeconds, median(all), 0.1)

		small := int(0.95 * rate / adviceCores)
		all, _ = servedBy(t, jobs, small)
		assert.Contains(t, modesOf(all), quality.Growing, "%d upstreams are too few", small)
		// Busy cores do not show by how much: the rise of the times to first byte does.
		trend := trendOf(all, 5*time.Minute)
		rise := trend.Rise() / trend.Span
		assert.InEpsilon(t, rate/float64(small*adviceCores), 1+rise, 0.1, "more work comes than is done")
	}
}

func median(all []Result) float64 {
	var times []float64
	for i := range all {
		times = append(times, all[i].FirstByte.Seconds())
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// worst is the median time to first byte in the worst stretch of five seconds.
func worst(all []Result) (seconds float64) {
	of := map[time.Duration][]Result{}
	for i := range all {
		at := all[i].Arrived / (5 * time.Second)
		of[at] = append(of[at], all[i])
	}
	for _, one := range of {
		if len(one) > 20 {
			seconds = max(seconds, median(one))
		}
	}
	return seconds
}

// In a rush, a fleet of the size advised for mode 2 makes the median job wait as long
// as promised, and one upstream less breaks the bound.
func TestAdviceForModeTwoHolds(t *testing.T) {
	rush := func(at float64) float64 {
		if at > 300 && at < 420 {
			return 120
		}
		return 40
	}
	for seed := range uint64(2) {
		jobs := demand(seed, 15*time.Minute, rush)
		for _, bound := range []time.Duration{3 * time.Second, 10 * time.Second} {
			a := advise(t, jobs, 20, bound)
			require.NotNil(t, a.Bounded)
			all, full := servedBy(t, jobs, a.Bounded.Upstreams)
			less, _ := servedBy(t, jobs, a.Bounded.Upstreams-1)
			t.Logf("%+v: full %.2f, first byte %.2f; with one less %.2f", *a.Bounded, full, worst(all), worst(less))
			assert.InEpsilon(t, a.Bounded.FirstByteSeconds, worst(all), 0.1)
			assert.Greater(t, worst(less), bound.Seconds())
			assert.InEpsilon(t, min(1, a.Bounded.Full), full, 0.1)
		}
	}
}
