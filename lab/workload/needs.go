package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/lab/trace"
)

// Needs is data that jobs need besides their project, such as imports that projects share, or the data sets of a query.
// Each is as large as some project's.
type Needs struct {
	// Count is how many there are; 0 is none. Their popularity falls as that of words.
	Count int `yaml:"count"`
	// Most is how many a job needs at most: all numbers from 0 are equally likely.
	Most int `yaml:"most"`
	// Each makes every job draw its own. Otherwise all jobs of a project need the same.
	Each bool `yaml:"each"`
}

func (n Needs) check(f *settings.Faults) {
	f.Within("count", n.Count, 0, maxProjects)
	f.Within("most", n.Most, 0, min(n.Count, 32))
}

// needs draws what a job needs.
func (g *Generator) needs(project int, rng *rand.Rand) (needs []trace.Need) {
	c := g.cfg.Needs
	if c.Most == 0 {
		return nil
	}
	if !c.Each {
		rng = rand.New(source(g.cfg.Seed, streamNeeds, 1+project))
	}
	for n := rng.IntN(c.Most + 1); len(needs) < n; {
		data := g.data[g.needed.pick(rng)]
		if !slices.Contains(needs, data) {
			needs = append(needs, data)
		}
	}
	return needs
}

// beginNeeds makes the data.
func (g *Generator) beginNeeds() {
	rng := rand.New(source(g.cfg.Seed, streamNeeds, 0))
	for i := range g.cfg.Needs.Count {
		like := &g.population[rng.IntN(len(g.population))]
		g.data = append(g.data, trace.Need{Name: trace.Project(fmt.Sprintf("data-%d", i)), Load: like.Load, Bytes: like.Bytes})
		g.needed.add(1 / float64(i+1))
	}
}
