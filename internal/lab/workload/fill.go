package workload

import (
	"math/rand/v2"

	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/trace"
)

// fill sets what all jobs of a project have in common.
func (g *Generator) fill(job *trace.Job, project int, rng *rand.Rand) *projectModel {
	p := &g.population[project]
	job.Project = p.ID
	job.Version = 1 + p.imports
	job.Load = p.Load
	job.Bytes = p.Bytes
	job.Submitter = 1 + rng.Int64N(int64(g.cfg.Submitters))
	return p
}

// fillLow makes the job of one channel, counted from 0.
func (g *Generator) fillLow(job *trace.Job, project, channel int, rng *rand.Rand) {
	p := g.fill(job, project, rng)
	c := &p.Channels[channel]
	factor := logNormal(rng, 1, g.cfg.Schedule.JobSpread)
	factor = min(factor, g.cfg.Population.MaxWork/(c.Operators+c.Output))
	job.Priority = selection.Low
	job.Timeouts = g.cfg.LowTimeouts
	job.Operators, job.Output = rounded(c.Operators*factor), rounded(c.Output*factor)
	share(job, p, channel)
}

// fillHigh makes a job of a person who looks at one channel.
func (g *Generator) fillHigh(job *trace.Job, project int, rng *rand.Rand) {
	p := g.fill(job, project, rng)
	c := &g.cfg.Session
	work := min(logNormal(rng, p.view, c.WorkSpread), c.MaxWork)
	output := g.cfg.Population.OutputShare
	job.Priority = selection.High
	job.Timeouts = g.cfg.HighTimeouts
	job.Operators, job.Output = rounded((1-output)*work), rounded(output*work)
	share(job, p, rng.IntN(len(p.Channels)))
}

// fillPrefetch makes the job that loads a project when a person opens it.
func (g *Generator) fillPrefetch(job *trace.Job, project int, rng *rand.Rand) {
	g.fill(job, project, rng)
	job.Priority = selection.High
	job.Kind = trace.Prefetch
	job.Timeouts = g.cfg.HighTimeouts
}

// share sets the channel and its shared rules.
func share(job *trace.Job, p *projectModel, channel int) {
	job.Channel = int64(channel + 1)
	if set := p.Channels[channel].Set; set > 0 {
		job.Shared, job.SharedRules = p.Sets[set-1].Name, p.Sets[set-1].Work
	}
}
