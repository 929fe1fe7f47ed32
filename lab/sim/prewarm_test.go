package sim_test

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/lab/workload"
	"example.org/pilotfish/pkg/selection"
)

// prewarm adds prefetches to a trace: when an upstream's stop is announced, for the projects with the most jobs there.
type prewarm struct {
	jobs  iter.Seq[trace.Job]
	most  int // maximum number of projects per upstream
	stops sim.Stops
	known map[uint64]trace.Job // the last job of each project
	there [14]map[uint64]int   // recent jobs of each project at each upstream
}

func (p *prewarm) source(yield func(trace.Job) bool) {
	next, line, lines := 0, trace.Line(0), []trace.Line{0} // the new number of each line
	for i := range p.there {
		p.there[i] = map[uint64]int{}
	}
	for job := range p.jobs {
		for ; next < len(p.there); next++ {
			at := p.stops.First + time.Duration(next)*p.stops.Every - 27*time.Second // when sidecars know of the stop
			if at.Seconds() > job.Offset {
				break
			}
			counts := p.there[next]
			busiest := slices.SortedFunc(maps.Keys(counts), func(a, b uint64) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
			for i, key := range busiest[:min(p.most, len(busiest))] {
				of := p.known[key]
				of.Offset, of.Priority, of.Prefetch, of.After = at.Seconds()+float64(i)*1e-6, selection.High, true, 0
				of.SharedRules, of.Operators, of.Output, of.Shared = 0, 0, 0, ""
				if line++; !yield(of) {
					return
				}
			}
			for _, counts := range p.there { // older jobs count less
				maps.DeleteFunc(counts, func(key uint64, n int) bool { counts[key] = n / 2; return n < 2 })
			}
		}
		p.known[intake.Key(string(job.Project))] = job
		line++
		lines, job.After = append(lines, line), lines[job.After]
		if !yield(job) {
			return
		}
	}
}

// Prefetching the busiest projects of an upstream that will stop, at their next upstreams, does not pay: it adds
// fetches, and jobs are hardly faster. So the sidecar does not do it. lab/results/prewarm.txt has more seeds and loads.
func TestPrewarmDoesNotPay(t *testing.T) {
	const seeds, jobs, away = 3, 20000, 20 * time.Second
	fetches, mean := map[int]int{}, map[int][2]float64{}
	for _, most := range []int{0, 5, 20, 80} {
		var sum, n [2]float64
		for seed := range uint64(seeds) {
			w := workload.Default()
			w.Jobs, w.Duration, w.StartHour, w.Static, w.Seed = jobs, 600, 9, true, seed+1
			g, err := workload.New(w)
			require.NoError(t, err)
			c := sim.Config{Seed: seed + 1, Fleet: sim.DefaultFleet(), Sidecars: sim.DefaultSidecars(), WarmUp: 2 * time.Minute, Policy: selection.DefaultExpected()}
			c.Detector = func() overload.Detector { return func(overload.Sample) overload.Level { return 1 } }
			c.Fleet.Cores, c.Sidecars.Hints = 14, true
			c.Fleet.Stops = sim.Stops{First: 150 * time.Second, Every: 30 * time.Second, Away: away, Known: true}
			p := &prewarm{jobs: g.Jobs, most: most, stops: c.Fleet.Stops, known: map[uint64]trace.Job{}}
			c.Source, c.Observe = p.source, func(r *sim.Result) {
				if r.Server >= 0 && !r.Prefetch {
					p.there[r.Server][r.Project]++
					sum[r.Priority] += r.LastByte.Seconds()
					n[r.Priority]++
				}
			}
			totals, err := sim.Run(t.Context(), c)
			require.NoError(t, err)
			fetches[most] += totals.Fetches
		}
		mean[most] = [2]float64{sum[selection.Low] / n[selection.Low], sum[selection.High] / n[selection.High]}
		t.Logf("%2d projects: %6d fetches; mean duration of high jobs %.3f s, of low jobs %.3f s", most, fetches[most], mean[most][selection.High], mean[most][selection.Low])
		assert.GreaterOrEqual(t, fetches[most], fetches[0], "it saves no fetch")
		for p := range mean[most] {
			assert.Greater(t, mean[most][p], 0.97*mean[0][p], "jobs are not 3 %% faster, with %d projects", most)
		}
	}
}
