package workload

import (
	"math"
	"math/rand/v2"

	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/trace"
)

// Crowd is a flash crowd: for a while, many jobs come for one project.
type Crowd struct {
	// At is when it begins and For how long it lasts, in seconds.
	At  float64 `yaml:"at"`
	For float64 `yaml:"for"`
	// Jobs is how many jobs it adds, evenly spread at random over its time.
	Jobs int `yaml:"jobs"`
	// HighShare is the share of them that is high.
	HighShare float64 `yaml:"high_share"`
	// Bytes chooses the project whose data has the size nearest to it; 0 draws
	// one as people do who open projects.
	Bytes float64 `yaml:"bytes"`
}

func (c *Crowd) check(f *settings.Faults, duration float64) {
	f.Between("at", c.At, 0, trace.MaxSeconds)
	f.Between("for", c.For, 0, trace.MaxSeconds)
	if c.At+c.For > duration {
		f.Add("for", "%v s from %v s on is longer than the workload, %v s", c.For, c.At, duration)
	}
	f.Within("jobs", c.Jobs, 1, 1e9)
	f.Between("high_share", c.HighShare, 0, 1)
	f.Between("bytes", c.Bytes, 0, 1e12)
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
	if c.Bytes > 0 {
		c.project = g.nearest(c.Bytes)
	}
	if number == 0 {
		g.crowded = c.project
	}
	c.times = instants{rng: c.rng, left: c.Jobs}
	g.queue.push(c.next(), c)
}

// CrowdProject is the identifier of the first crowd's project.
func (g *Generator) CrowdProject() string { return string(g.population[g.crowded].ID) }

// nearest is the project whose size has the least ratio to the given one.
func (g *Generator) nearest(bytes float64) int {
	best, least := 0, math.Inf(1)
	for i := range g.population {
		if d := math.Abs(math.Log(float64(g.population[i].Bytes) / bytes)); d < least {
			best, least = i, d
		}
	}
	return best
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
