package scenario

import (
	"context"
	"fmt"
	"time"

	"example.org/pilotfish/lab/compare"
	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/stats"
)

// Trial is one run with one seed. What it holds does not grow with the number
// of its jobs.
type Trial struct {
	scenario *Scenario
	run      *Run
	seed     uint64

	// The results, once it was played.
	took   time.Duration
	stats  *stats.Run
	counts compare.Counts
}

// String tells people what was played, and how long that took.
func (t *Trial) String() string {
	return fmt.Sprintf("%s, seed %d: %s jobs in %.1f s", t.run.Name, t.seed, stats.Thousands(int(t.counts.Jobs)), t.took.Seconds())
}

// play simulates the trial.
func (t *Trial) play(ctx context.Context) error {
	fail := func(err error) error { return fmt.Errorf("run %q, seed %d: %w", t.run.Name, t.seed, err) }
	c, err := t.run.setup(t.seed)
	if err != nil {
		return fail(err)
	}
	in, err := t.scenario.jobs.open(t.seed)
	if err != nil {
		return fail(err)
	}
	defer in.Close()
	upstreams := t.run.Fleet.Upstreams
	t.stats = stats.NewRun(upstreams)
	c.Source, c.WarmUp, c.End = in, t.scenario.WarmUp, t.scenario.End
	c.Observe = func(r *sim.Result) {
		count(&t.counts, r)
		if r.Prefetch {
			return // nobody waits for it
		}
		t.stats.Add(stats.Sample{
			Priority: r.Priority, Upstream: r.Server,
			Wait: r.Wait.Seconds(), Execution: r.Run.Seconds(), FirstByte: max(0, r.FirstByte.Seconds()),
		})
	}
	begin := time.Now()
	totals, err := sim.Run(ctx, c)
	t.took = time.Since(begin)
	if err != nil {
		return fail(err)
	}
	t.sum(totals)
	return nil
}

// count adds a job that ended.
func count(c *compare.Counts, r *sim.Result) {
	c.Jobs++
	c.Retries += float64(max(0, r.Attempts-1))
	switch r.Outcome {
	case sim.Expired:
		c.Expired++
	case sim.Overrun:
		c.Overrun++
	case sim.Lost:
		c.Lost++
	case sim.Unserved:
		c.Unserved++
	case sim.Failed:
		c.Failed++
	case sim.Done:
	}
}

// sum adds what is known only when the trial is over.
func (t *Trial) sum(totals sim.Totals) {
	c, f := &t.counts, &t.run.Fleet
	c.Fetches = float64(totals.Fetches)
	c.FetchesPer1k = 1000 * c.Fetches / max(1, c.Jobs)
	c.Evictions = float64(totals.Evictions)
	c.Reports = float64(totals.Reports)
	if upstreamSeconds := totals.Length.Seconds() * float64(f.Upstreams); upstreamSeconds > 0 {
		c.ReportsPerSec = c.Reports / upstreamSeconds
		c.Load = totals.CoreSeconds / upstreamSeconds / float64(f.Cores)
	}
}
