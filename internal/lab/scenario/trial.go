package scenario

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/lab/results"
	"example.org/pilotfish/internal/lab/sim"
	"example.org/pilotfish/internal/lab/stats"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/trace"
)

// Trial is one run with one seed. What it holds does not grow with the number
// of its jobs.
type Trial struct {
	scenario *Scenario
	run      *Run
	seed     uint64

	// The results, once it was played.
	played bool
	took   time.Duration
	stats  *stats.Run
	crowd  *stats.Run // high is the crowd's project, low the others; nil unless apart
	counts results.Counts
	times  *timelines
}

// String tells people what was played, and how long that took.
func (t *Trial) String() string {
	return fmt.Sprintf("%s, seed %d: %s jobs in %.1f s", t.run.Name, t.seed, stats.Thousands(int(t.counts.Jobs)), t.took.Seconds())
}

// play simulates the trial, and adds the jobs that are sent to done.
func (t *Trial) play(ctx context.Context, done *atomic.Int64) error {
	c, in, err := t.scenario.open(t.run, t.seed)
	if err != nil {
		return err
	}
	defer in.Close()

	upstreams := t.run.Fleet.Upstreams
	t.stats = stats.NewRun(upstreams)
	t.times = newTimelines(upstreams, t.run.Stalled)
	var crowd uint64
	if t.scenario.Apart {
		t.crowd, crowd = stats.NewRun(upstreams), intake.Key(in.(generated).CrowdProject())
	}
	c.Source = &counted{in, done}
	c.SampleEvery, c.Sample = t.scenario.Sample, t.times.add
	c.Observe = func(r *sim.Result) {
		count(&t.counts, r)
		if r.Prefetch {
			return // nobody waits for it
		}
		s := stats.Sample{
			Priority: r.Priority, Upstream: r.Server,
			Wait: r.Wait.Seconds(), Execution: r.Run.Seconds(), Unloaded: r.Work.Seconds(),
			FirstByte: max(0, r.FirstByte.Seconds()),
		}
		t.stats.Add(s)
		if t.crowd != nil {
			s.Priority = selection.Low
			if r.Project == crowd {
				s.Priority = selection.High
			}
			t.crowd.Add(s)
		}
	}
	begin := time.Now()
	totals, err := sim.Run(ctx, c)
	t.took = time.Since(begin)
	if err != nil {
		return fmt.Errorf("run %q, seed %d: %w", t.run.Name, t.seed, err)
	}
	t.sum(totals)
	return nil
}

// counted counts the jobs that it yields.
type counted struct {
	source
	sent *atomic.Int64
}

func (c *counted) Next() (trace.Job, error) {
	job, err := c.source.Next()
	if err == nil {
		c.sent.Add(1)
	}
	return job, err
}

// count adds a job that ended.
func count(c *results.Counts, r *sim.Result) {
	c.Jobs++
	if r.Prefetch {
		c.Prefetches++
	}
	c.Retries += float64(max(0, r.Attempts-1))
	switch r.Completeness {
	case intake.Complete:
		c.Complete++
	case intake.Partial:
		c.Partial++
	case intake.Absent:
		c.Absent++
	}
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
	case sim.Shed:
		c.Shed++
	case sim.Done:
	}
}

// sum adds what is known only when the trial is over.
func (t *Trial) sum(totals sim.Totals) {
	c, f := &t.counts, &t.run.Fleet
	c.Fetches = float64(totals.Fetches)
	c.FetchesPer1k = 1000 * c.Fetches / max(1, c.Jobs)
	c.Evictions = float64(totals.Evictions)
	c.Preemptions = float64(totals.Stops)
	c.Reports = float64(totals.Reports)
	if upstreamSeconds := totals.Length.Seconds() * float64(f.Upstreams); upstreamSeconds > 0 {
		c.ReportsPerSec = c.Reports / upstreamSeconds
		c.Load = totals.CoreSeconds / upstreamSeconds / float64(f.Cores)
	}
	c.Imbalance = t.times.imbalance.Relative()
	c.Backlog, c.Queued = t.times.backlog.Mean(), t.times.queued.Mean()
}
