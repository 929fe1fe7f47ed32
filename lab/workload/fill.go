package workload

import (
	"math/rand/v2"

	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// The time-outs of all jobs of a priority.
func lowTimeouts() trace.Timeouts  { return trace.Timeouts{Queue: 240, Evaluate: 1800, Stream: 3600} }
func highTimeouts() trace.Timeouts { return trace.Timeouts{Queue: 60, Evaluate: 600, Stream: 600} }

// fill sets what all jobs of a project have in common.
func (g *Generator) fill(job *trace.Job, project int, rng *rand.Rand) *projectModel {
	p := &g.population[project]
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
	p := g.fill(job, project, rng)
	c := &p.Channels[channel]
	factor := min(logNormal(rng, 1, jobSpread), g.cfg.MaxWork/(c.Operators+c.Output))
	job.Priority = selection.Low
	job.Timeouts = lowTimeouts()
	job.Operators, job.Output = rounded(c.Operators*factor), rounded(c.Output*factor)
	share(job, p, channel)
}

// fillHigh makes a job of a person who looks at one channel.
func (g *Generator) fillHigh(job *trace.Job, project int, rng *rand.Rand) {
	p := g.fill(job, project, rng)
	work := min(logNormal(rng, p.view, viewSpread), g.cfg.MaxView)
	job.Priority = selection.High
	job.Timeouts = highTimeouts()
	job.Operators, job.Output = rounded((1-outputShare)*work), rounded(outputShare*work)
	share(job, p, rng.IntN(len(p.Channels)))
}

// fillPrefetch makes the job that loads a project when a person opens it.
func (g *Generator) fillPrefetch(job *trace.Job, project int, rng *rand.Rand) {
	g.fill(job, project, rng)
	job.Priority = selection.High
	job.Prefetch = true
	job.Timeouts = highTimeouts()
}

// share sets the shared rules of a channel.
func share(job *trace.Job, p *projectModel, channel int) {
	if set := p.Channels[channel].Set; set > 0 {
		job.Shared, job.SharedRules = p.Sets[set-1].Name, p.Sets[set-1].Work
	}
}
