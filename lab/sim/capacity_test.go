package sim

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/lab/trace"
)

// The advice is tested by the simulator: it runs the same jobs with the advised number of
// upstreams, and the predictions must hold within 10 %.

const adviceCores = 8

// demand returns Poisson arrivals of jobs with a mean work of one second. rate gives the jobs
// per second at each instant.
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

// advise returns the advice for jobs at the given number of upstreams.
func advise(t *testing.T, jobs []trace.Job, upstreams int) *quality.Advice {
	t.Helper()
	var came, cores []float64
	for i := range jobs {
		for int(jobs[i].Offset) >= len(came) {
			came, cores = append(came, 0), append(cores, 0)
		}
		came[int(jobs[i].Offset)]++
	}
	for i := range jobs { // a job needs one core; its work is split into seconds
		for at, end := jobs[i].Offset, jobs[i].Offset+jobs[i].Work(); at < end && int(at) < len(cores); at = math.Floor(at) + 1 {
			cores[int(at)] += min(end, math.Floor(at)+1) - at
		}
	}
	a := quality.Advise(quality.Fleet{Upstreams: upstreams, Cores: float64(upstreams * adviceCores)}, time.Second, came, cores)
	require.NotNil(t, a)
	return a
}

// servedBy simulates jobs at the given number of upstreams. It returns the results in order of
// arrival, and the share of busy cores in the busiest minute.
func servedBy(t *testing.T, jobs []trace.Job, upstreams int) (all []Result, full float64) {
	t.Helper()
	c := setup(t, "expected", "none", upstreams, adviceCores)
	c.Sidecars.Hints = true
	c.Source = slices.Values(jobs)
	busy := map[time.Duration]float64{} // by minute
	c.Observe = func(r *Result) {
		all = append(all, *r)
		for at, end := r.Arrived+r.Wait, r.Arrived+r.Wait+r.Run; at < end; {
			next := min(end, at.Truncate(time.Minute)+time.Minute)
			busy[at.Truncate(time.Minute)] += (next - at).Minutes() / float64(upstreams*adviceCores)
			at = next
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

// judged returns the machine of a sidecar that has seen these jobs until an instant, and the
// modes that the fleet entered.
func judged(all []Result, until time.Duration) (m *quality.Machine, modes []quality.Mode) {
	type event struct {
		at time.Duration
		do func(now time.Time)
	}
	m = quality.New(epoch)
	var events []event
	for i := range all {
		r := &all[i]
		arrived := epoch.Add(r.Arrived)
		events = append(events, event{r.Arrived + r.FirstByte, func(now time.Time) {
			m.Began(now, &dispatch.Job{Request: dispatch.Request{Arrived: arrived}}, pool.Choice{Claimed: arrived}, nil)
		}}, event{r.Arrived + r.LastByte, func(now time.Time) {
			m.Ended(now, quality.Default(), &record.Job{
				Outcome: intake.Answered, Completeness: r.Completeness, Arrived: arrived, TTFB: r.FirstByte, Total: r.LastByte,
			})
		}})
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	next := time.Duration(0)
	for _, e := range events {
		for ; next < e.at && next <= until; next += time.Second {
			for _, c := range m.Advance(epoch.Add(next), quality.Moment{}) {
				modes = append(modes, c.Mode)
			}
		}
		if e.at > until {
			break
		}
		e.do(epoch.Add(e.at))
	}
	return m, modes
}

// modesOf returns the modes that the sidecar would enter with these jobs.
func modesOf(all []Result) []quality.Mode {
	_, modes := judged(all, time.Hour)
	return modes
}

// A fleet of the size advised for mode 1 stays in it, with the predicted utilisation. A fleet
// that is smaller than its load does not.
func TestAdviceForModeOneHolds(t *testing.T) {
	for _, rate := range []float64{20, 60} {
		jobs := demand(uint64(rate), 20*time.Minute, func(float64) float64 { return rate })
		a := advise(t, jobs, 3)
		assert.InEpsilon(t, 3*adviceCores, a.JobsPerSecond, 0.1, "jobs are a core-second long")

		all, full := servedBy(t, jobs, a.Needed)
		promised := 3 * a.FullBusiest / float64(a.Needed)
		t.Logf("%v jobs a second: %d upstreams; full %.2f, promised %.2f; modes %v", rate, a.Needed, full, promised, modesOf(all))
		assert.InEpsilon(t, promised, full, 0.1)
		assert.Equal(t, []quality.Mode{quality.Steady}, modesOf(all))

		small := int(0.95 * rate / adviceCores)
		all, _ = servedBy(t, jobs, small)
		assert.Contains(t, modesOf(all), quality.QueueGrows, "%d upstreams are too few", small)
		// Busy cores do not show how much larger the load is: the rise of the times to first
		// byte does.
		m, _ := judged(all, 5*time.Minute)
		trend := m.View(epoch.Add(5*time.Minute), nil).Fleet.Trend
		rise := trend.Rise() / trend.Span
		assert.InEpsilon(t, rate/float64(small*adviceCores), 1+rise, 0.15, "more work comes than is done")
	}
}

// While twice as much work arrives as is done, most forecasts of the first lost job are right within a factor of 1.5, and
// nearly all within 2, from the moment at which the queue is seen to grow: the job that is lost waits until its queue
// timeout, although its evaluate timeout is far longer.
func TestForecastOfTheFirstLostJob(t *testing.T) {
	var off []float64 // logarithms of the ratios of forecasts to results
	for seed := range uint64(4) {
		off = append(off, forecasts(t, 5+seed)...)
	}
	slices.Sort(off)
	share := func(factor float64) float64 {
		n, _ := slices.BinarySearch(off, math.Log(factor))
		return float64(n) / float64(len(off))
	}
	t.Logf("%d forecasts: %.0f %% within a factor of 1.5, %.0f %% within 2", len(off), 100*share(1.5), 100*share(2))
	assert.Greater(t, len(off), 100)
	assert.Greater(t, share(1.5), 0.9)
	assert.Greater(t, share(2), 0.97)
}

// forecasts returns the ratios of the forecasts of a run to the results, as logarithms.
func forecasts(t *testing.T, seed uint64) (off []float64) {
	const upstreams, queue, evaluate = 4, 60 * time.Second, 120 * time.Second
	jobs := demand(seed, 4*time.Minute, func(at float64) float64 {
		if at < 60 {
			return 0.3 * upstreams * adviceCores
		}
		return 2 * upstreams * adviceCores
	})
	for i := range jobs {
		jobs[i].Timeouts = trace.Timeouts{Queue: queue.Seconds(), Evaluate: evaluate.Seconds()}
	}
	all, _ := servedBy(t, jobs, upstreams)
	first, m := time.Duration(math.MaxInt64), quality.New(epoch)
	var began []Result
	for _, r := range all {
		if r.Outcome == Expired {
			first = min(first, r.Arrived+r.LastByte)
		} else {
			began = append(began, r)
		}
	}
	slices.SortFunc(began, func(a, b Result) int { return cmp.Compare(a.Arrived+a.FirstByte, b.Arrived+b.FirstByte) })
	for now := time.Duration(0); now < first*9/10; now += time.Second {
		for ; began[0].Arrived+began[0].FirstByte <= now; began = began[1:] {
			r, arrived := &began[0], epoch.Add(began[0].Arrived)
			m.Began(arrived.Add(r.FirstByte), &dispatch.Job{
				Request: dispatch.Request{Arrived: arrived, Queue: queue}, FirstByte: queue + evaluate, Patience: queue,
			}, pool.Choice{Claimed: arrived}, &pool.Hint{Waited: r.Wait})
			m.Ended(arrived.Add(r.FirstByte), quality.Default(), &record.Job{Outcome: intake.Answered, Completeness: intake.Complete})
		}
		m.Advance(epoch.Add(now), quality.Moment{})
		if s := m.View(epoch.Add(now), nil).Fleet; s.DeadlineSeconds != nil {
			off = append(off, math.Abs(math.Log(*s.DeadlineSeconds/(first-now).Seconds())))
		}
	}
	return off
}
