package workload

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// timeouts are the timeouts of all jobs, by priority.
var timeouts = [selection.Priorities]trace.Timeouts{
	selection.Low:  {Queue: 240, Evaluate: 1800, Stream: 3600},
	selection.High: {Queue: 60, Evaluate: 600, Stream: 600},
}

// fill sets the fields that do not depend on the kind of job: priority, project, data and submitter.
func (g *Generator) fill(job *trace.Job, project int, priority selection.Priority, rng *rand.Rand) *projectModel {
	p := &g.population[project]
	job.Priority, job.Timeouts = priority, timeouts[priority]
	job.Project = p.ID
	job.Version = 1 + p.imports
	job.Load = p.Load
	job.Bytes = p.Bytes
	job.Needs = g.needs(project, rng)
	job.Submitter = 1 + rng.Int64N(int64(g.cfg.Submitters))
	return p
}

// fillLow makes the job of one channel, counted from 0.
func (g *Generator) fillLow(job *trace.Job, project, channel int, rng *rand.Rand) {
	p := g.fill(job, project, selection.Low, rng)
	c := &p.Channels[channel]
	job.Channel = 1 + int64(channel)
	factor := min(logNormal(rng, 1, jobSpread), g.cfg.MaxWork/(c.Operators+c.Output))
	job.Operators, job.Output = rounded(c.Operators*factor), rounded(c.Output*factor)
	job.Shared, job.SharedRules = c.Set.Name, c.Set.Work
}

// fillHigh makes the job of a person who views one channel.
func (g *Generator) fillHigh(job *trace.Job, project int, rng *rand.Rand) {
	p := g.fill(job, project, selection.High, rng)
	work := min(logNormal(rng, p.view, viewSpread), g.cfg.MaxView)
	job.Operators, job.Output = rounded((1-outputShare)*work), rounded(outputShare*work)
	set := p.Channels[rng.IntN(len(p.Channels))].Set
	job.Shared, job.SharedRules = set.Name, set.Work
}

// Needs is data that jobs need besides their project's, such as imports that projects share, or the tables of a query.
// Each is Size times as large as the data of some project.
type Needs struct {
	// Count is how many there are; 0 is none. Their popularity follows Zipf's law.
	Count int `yaml:"count"`
	// Most is the largest number that a job needs: all numbers from 0 to Most are equally likely.
	Most int `yaml:"most"`
	// Each makes every job draw its own needs. Otherwise all jobs of a project have the same needs.
	Each bool `yaml:"each"`
	// Size multiplies the bytes of each and the time to fetch it; 0 is 1.
	Size float64 `yaml:"size"`
}

func (n Needs) check(f *settings.Faults) {
	f.Within("count", n.Count, 0, maxProjects)
	f.Within("most", n.Most, 0, min(n.Count, 32))
	f.Between("size", n.Size, 0, 100)
}

// needs draws the data that a job needs besides its project's.
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

// beginNeeds draws the data that jobs can need.
func (g *Generator) beginNeeds() {
	rng := rand.New(source(g.cfg.Seed, streamNeeds, 0))
	for i := range g.cfg.Needs.Count {
		like, size := &g.population[rng.IntN(len(g.population))], cmp.Or(g.cfg.Needs.Size, 1)
		data := trace.Need{Name: trace.Project(fmt.Sprintf("data-%d", i)), Load: like.Load * size, Bytes: int64(float64(like.Bytes) * size)}
		g.data = append(g.data, data)
		g.needed.add(1 / float64(i+1))
	}
}
