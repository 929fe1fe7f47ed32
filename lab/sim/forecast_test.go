package sim

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/lab/trace"
)

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

// forecasts simulates four minutes, in which jobs arrive at 0.3 times the fleet's capacity and, after the first minute, at twice
// the capacity. It returns the ratios of the forecasts to the results, as logarithms.
func forecasts(t *testing.T, seed uint64) (off []float64) {
	const upstreams, cores, queue, evaluate = 4, 8, 60 * time.Second, 120 * time.Second
	rng, load := rand.New(rand.NewPCG(seed, 7)), 0.3
	var jobs []trace.Job
	for at := 0.0; at < 240; at += rng.ExpFloat64() / (load * upstreams * cores) {
		if at > 60 {
			load = 2
		}
		work := 0.25 + 0.75*rng.ExpFloat64() // a second in the mean
		jobs = append(jobs, trace.Job{
			Offset: at, Operators: work * 0.9, Output: work * 0.1,
			Timeouts: trace.Timeouts{Queue: queue.Seconds(), Evaluate: evaluate.Seconds()},
		})
	}
	c := setup(t, "expected", "none", upstreams, cores)
	c.Sidecars.Hints = true
	first, m := time.Duration(math.MaxInt64), quality.New(epoch)
	var began []Result
	run(t, c, slices.Values(jobs), func(r *Result) {
		if r.Outcome == Expired {
			first = min(first, r.Arrived+r.LastByte)
		} else {
			began = append(began, *r)
		}
	})
	slices.SortFunc(began, func(a, b Result) int { return cmp.Compare(a.Arrived+a.FirstByte, b.Arrived+b.FirstByte) })
	for now := time.Duration(0); now < first*9/10; now += time.Second {
		for ; began[0].Arrived+began[0].FirstByte <= now; began = began[1:] {
			r, arrived := &began[0], epoch.Add(began[0].Arrived)
			m.Began(arrived.Add(r.FirstByte), &dispatch.Job{
				Request: dispatch.Request{Arrived: arrived, Queue: queue}, FirstByte: queue + evaluate, QueueTimeout: queue,
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
