package workload

import (
	"fmt"
	"io"
	"math/rand/v2"

	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/lab/trace"
)

// Generator emits the jobs of a workload one by one, in order of time. It is
// not safe for concurrent use.
type Generator struct {
	cfg        Config
	population []projectModel
	// popular chooses the projects that people open, active the projects of
	// single jobs.
	popular, active chooser
	// data is what jobs may need besides their projects, needed chooses it.
	data   []trace.Need
	needed chooser

	queue             queue
	exports, sessions *rand.Rand
	emitted           int
	// job is the one being filled in. It is here to save an allocation for each.
	job trace.Job
}

// New returns the generator of a workload, with its population drawn.
func New(cfg Config) (*Generator, error) {
	var f settings.Faults
	if cfg.Check(&f); f.Err() != nil {
		return nil, fmt.Errorf("workload: %w", f.Err())
	}
	g := &Generator{
		cfg:      cfg,
		exports:  rand.New(source(cfg.Seed, streamExports, 0)),
		sessions: rand.New(source(cfg.Seed, streamSessions, 0)),
	}
	begin := g.beginSteady
	switch cfg.Pattern {
	case schedules:
		begin = g.beginSchedules
	case sources:
		begin = g.beginSources
	}
	if err := begin(); err != nil {
		return nil, err
	}
	for i := range g.population {
		p := &g.population[i]
		g.popular.add(p.Popularity)
		g.active.add(float64(len(p.Channels)) / p.Period)
	}
	g.beginNeeds()
	for i := range cfg.Crowds {
		g.beginCrowd(i)
	}
	return g, nil
}

// beginSchedules draws projects until their schedules make the low jobs, and
// lets sessions make all the others, so that the number of jobs is exact.
func (g *Generator) beginSchedules() (err error) {
	low := g.cfg.Jobs - int(float64(g.cfg.Jobs)*g.cfg.HighShare)
	number := 0
	g.population, err = newPopulation(&g.cfg, func(p *projectModel) bool {
		s := &schedule{project: number, firings: newFirings(&g.cfg, number, p)}
		number++
		runs := s.firings.count(&g.cfg)
		if runs == 0 {
			return low == 0
		}
		if fit := low / runs; fit < len(p.Channels) {
			// The last project gets the channels that fit, if any.
			p.Channels = p.Channels[:max(1, fit)]
			if fit == 0 {
				return true
			}
		}
		low -= runs * len(p.Channels)
		s.due, _ = s.firings.next(&g.cfg)
		g.queue.Add(s.due.at, 0, s)
		return low == 0
	})
	if err != nil {
		return err
	}
	scheduled := g.cfg.Jobs - int(float64(g.cfg.Jobs)*g.cfg.HighShare) - low
	a := newArrivals(&g.cfg, g.cfg.Jobs-scheduled)
	if at := a.next(); at < never {
		g.queue.Add(at, 0, a)
	}
	return nil
}

// Len is how many jobs there are in all.
func (g *Generator) Len() int { return g.cfg.Len() }

// Next returns the next job, or io.EOF after the last. There is no other error.
func (g *Generator) Next() (trace.Job, error) {
	if g.emitted == g.Len() {
		return trace.Job{}, io.EOF
	}
	for {
		// A process may begin others, but none that is due before itself.
		next := g.queue.Take()
		g.job = trace.Job{}
		emits, again := next.What.run(g, next.At, &g.job)
		if again < never {
			g.queue.Again(next, again)
		}
		if emits {
			g.job.Offset = instant(next.At)
			g.emitted++
			return g.job, nil
		}
	}
}

// line is the line of the job being filled in.
func (g *Generator) line() trace.Line { return trace.Line(g.emitted + 1) }
