package workload

import "example.org/pilotfish/lab/trace"

// schedule fires a project's channels time and again.
type schedule struct {
	project int
	firings firings
	due     firing
}

func (s *schedule) run(g *Generator, at float64, _ *trace.Job) (bool, float64) {
	if s.due.imports && !g.cfg.Static {
		g.population[s.project].imports++
	}
	// However late the firing is, its window ends with the workload.
	left := g.cfg.Duration - at
	late := min(logNormal(g.exports, delay, delaySpread), left/2)
	channels := float64(len(g.population[s.project].Channels))
	window := min(channels*logNormal(g.exports, pace, paceSpread), maxWindow, left-late)
	e := &export{project: s.project, begin: at + late, window: window}
	g.queue.Add(e.next(g), 0, e)

	var ok bool
	if s.due, ok = s.firings.next(&g.cfg); !ok {
		return false, never
	}
	return false, s.due.at
}

// export is one firing: a low job for each channel, spread over a window.
type export struct {
	project       int
	channel       int
	begin, window float64
}

// next is when the next channel's job is sent: somewhere in its part of the window.
func (e *export) next(g *Generator) float64 {
	channels := len(g.population[e.project].Channels)
	return e.begin + e.window*(float64(e.channel)+g.exports.Float64())/float64(channels)
}

func (e *export) run(g *Generator, _ float64, job *trace.Job) (bool, float64) {
	g.fillLow(job, e.project, e.channel, g.exports)
	e.channel++
	if e.channel == len(g.population[e.project].Channels) {
		return true, never
	}
	return true, e.next(g)
}
