package workload

import (
	"fmt"
	"math"
	"math/rand/v2"

	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/lab/agenda"
	"example.org/pilotfish/lab/trace"
)

// never is later than any instant: when a process that has ended is due.
const never = math.MaxFloat64

// process is something that repeats: a schedule, the channels of one firing, a person's session.
type process interface {
	// run performs the step that is due at an instant. It reports whether it filled in a job to
	// emit, and when the next step is due.
	run(g *Generator, at float64, job *trace.Job) (emits bool, again float64)
}

// Generator emits the jobs of a workload one by one, in order of time. It is
// not safe for concurrent use.
type Generator struct {
	cfg        Config
	population []projectModel
	// popular chooses the projects that people open, active the projects of single jobs.
	popular, active chooser
	// data lists the data that jobs can need besides their projects' own; needed chooses from it.
	data   []trace.Need
	needed chooser

	queue             agenda.Agenda[float64, process]
	exports, sessions *rand.Rand
	emitted           int
}

// New draws the population of a workload and returns its generator.
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
	begin := map[Pattern]func() error{schedules: g.beginSchedules, steady: g.beginSteady, bursts: g.beginSteady, sources: g.beginSources}
	if err := begin[cfg.Pattern](); err != nil {
		return nil, err
	}
	for i := range g.population {
		p := &g.population[i]
		g.popular.add(p.Popularity)
		g.active.add(float64(len(p.Channels)) / p.Period)
	}
	g.beginNeeds()
	g.beginCrowd()
	return g, nil
}

// beginSchedules draws projects until their schedules make the low jobs. Sessions make the rest, so that
// the number of jobs is exact.
func (g *Generator) beginSchedules() (err error) {
	high, number := int(float64(g.cfg.Jobs)*g.cfg.HighShare), 0
	low := g.cfg.Jobs - high
	g.population, err = newPopulation(&g.cfg, func(p *projectModel) bool {
		s := &schedule{project: number, firings: firings{pcg: *source(g.cfg.Seed, streamSchedules, number), due: p.Phase, period: p.Period}}
		number++
		runs := s.firings.count(&g.cfg)
		if runs == 0 {
			return low == 0
		}
		if fit := low / runs; fit < len(p.Channels) {
			// The last project keeps only as many channels as jobs are missing.
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
	a := newArrivals(&g.cfg, high+low)
	g.queue.Add(a.next(), 0, a)
	return nil
}

// Jobs yields the jobs in order of time. It can be called once.
func (g *Generator) Jobs(yield func(trace.Job) bool) {
	var job trace.Job
	for g.emitted < g.cfg.Len() {
		// A process can start others, but none that is due before itself.
		next := g.queue.Take()
		job = trace.Job{}
		emits, again := next.What.run(g, next.At, &job)
		if again < never {
			g.queue.Again(next, again)
		}
		if !emits {
			continue
		}
		job.Offset = math.Floor(next.At*1e6) / 1e6 // so that no job is sent after the workload's end
		g.emitted++
		if !yield(job) {
			return
		}
	}
}
