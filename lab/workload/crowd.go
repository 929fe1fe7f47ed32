package workload

import (
	"math/rand/v2"

	"example.org/pilotfish/lab/trace"
)

// Crowd is a flash crowd: for a while, many jobs come for one project.
type Crowd struct {
	// At is when it begins and For how long it lasts, in seconds.
	At, For float64
	// Jobs is how many jobs it adds, evenly spread at random over its time.
	Jobs int
	// HighShare is the share of them that is high.
	HighShare float64
}

// crowd sends the jobs of one Crowd.
type crowd struct {
	Crowd
	project int
	rng     *rand.Rand
	times   instants
}

func (g *Generator) beginCrowd(number int) {
	c := &crowd{Crowd: g.cfg.Crowds[number], rng: rand.New(source(g.cfg.Seed, streamCrowds, number))}
	c.project = g.popular.pick(c.rng)
	c.times = instants{rng: c.rng, left: c.Jobs}
	g.queue.push(c.next(), c)
}

// next is when the next job is sent.
func (c *crowd) next() float64 {
	share, ok := c.times.next()
	if !ok {
		return never
	}
	return c.At + share*c.For
}

func (c *crowd) run(g *Generator, _ float64, job *trace.Job) (bool, float64) {
	if c.rng.Float64() < c.HighShare {
		g.fillHigh(job, c.project, c.rng)
	} else {
		g.fillLow(job, c.project, c.rng.IntN(len(g.population[c.project].Channels)), c.rng)
	}
	return true, c.next()
}
