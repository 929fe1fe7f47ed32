package workload

import (
	"math/rand/v2"

	"example.org/pilotfish/lab/trace"
)

// Crowd is a flash crowd: for a limited time, many jobs arrive for one project.
type Crowd struct {
	// At is when it starts, and For how long it lasts, in seconds.
	At, For float64
	// Jobs is how many jobs it adds, at uniformly distributed random times.
	Jobs int
	// HighShare is the share of high jobs among them.
	HighShare float64
}

// singles sends independent jobs: those of a Crowd, or all jobs of the patterns steady and bursts. With these
// patterns, the probability of a project is proportional to the number of jobs that its schedule would send.
type singles struct {
	Crowd
	project int // of the crowd; negative: drawn for each job
	rng     *rand.Rand
	times   instants
	bursts  Bursts
	sent    int
}

func (g *Generator) beginCrowd() {
	rng := rand.New(source(g.cfg.Seed, streamCrowds, 0))
	s := &singles{Crowd: g.cfg.Crowd, project: g.popular.pick(rng), rng: rng, times: instants{rng: rng, left: g.cfg.Crowd.Jobs}}
	g.queue.Add(s.next(), 0, s)
}

// beginSteady draws the population of the patterns steady and bursts.
func (g *Generator) beginSteady() (err error) {
	left := g.cfg.projects()
	g.population, err = newPopulation(&g.cfg, func(*projectModel) bool {
		left--
		return left == 0
	})
	s := &singles{
		Crowd: Crowd{For: g.cfg.Duration, HighShare: g.cfg.HighShare}, project: -1, rng: rand.New(source(g.cfg.Seed, streamJobs, 0)),
		times: instants{rng: rand.New(source(g.cfg.Seed, streamArrivals, 0)), left: g.cfg.Jobs},
	}
	if g.cfg.Pattern == bursts {
		s.bursts = g.cfg.Bursts
	}
	g.queue.Add(s.next(), 0, s)
	return err
}

// next returns when the next job is sent.
func (s *singles) next() float64 {
	share, ok := s.times.next()
	if !ok {
		return never
	}
	s.sent++
	if s.bursts.Size > 0 {
		return s.bursts.at(s.sent - 1)
	}
	return s.At + share*s.For
}

func (s *singles) run(g *Generator, at float64, job *trace.Job) (bool, float64) {
	high, project := s.rng.Float64() < s.HighShare, s.project
	hot, isHot := 0, false
	if project < 0 {
		hot, isHot = g.hot(at, s.rng)
	}
	switch {
	case project >= 0:
	case isHot:
		project = hot
	case high:
		project = g.popular.pick(s.rng)
	default:
		project = g.active.pick(s.rng)
	}
	if high {
		g.fillHigh(job, project, s.rng)
	} else {
		g.fillLow(job, project, s.rng.IntN(len(g.population[project].Channels)), s.rng)
	}
	s.bursts.fix(job)
	return true, s.next()
}
