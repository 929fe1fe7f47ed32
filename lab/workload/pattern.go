package workload

import (
	"math/rand/v2"

	"example.org/pilotfish/lab/trace"
)

// singles sends jobs that are independent of each other, at instants of chance. A project's chance is the number of jobs that it would have.
type singles struct {
	rng   *rand.Rand
	times instants
	sent  int
}

func newSingles(cfg *Config) *singles {
	return &singles{
		rng:   rand.New(source(cfg.Seed, streamJobs, 0)),
		times: instants{rng: rand.New(source(cfg.Seed, streamArrivals, 0)), left: cfg.Jobs},
	}
}

// next is when the next job is sent.
func (s *singles) next(cfg *Config) float64 {
	if s.sent == cfg.Jobs {
		return never
	}
	share, _ := s.times.next()
	return share * cfg.Duration
}

func (s *singles) run(g *Generator, _ float64, job *trace.Job) (bool, float64) {
	if s.rng.Float64() < g.cfg.HighShare {
		g.fillHigh(job, g.popular.pick(s.rng), s.rng)
	} else {
		project := g.active.pick(s.rng)
		g.fillLow(job, project, s.rng.IntN(len(g.population[project].Channels)), s.rng)
	}
	s.sent++
	return true, s.next(&g.cfg)
}
