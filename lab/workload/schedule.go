package workload

import (
	"math"
	"math/rand/v2"

	"example.org/pilotfish/lab/trace"
)

// period is a time between two firings, and the share of the projects that have it.
type period struct {
	seconds, share float64
}

// periods run from a quarter of an hour to a day (the thesis, 4.1.2); the
// shares are an assumption.
func periods() [6]period {
	return [...]period{{900, 0.08}, {1800, 0.07}, {3600, 0.30}, {4 * hour, 0.20}, {12 * hour, 0.10}, {day, 0.25}}
}

// slower returns the next longer period, at most a day.
func slower(p float64) float64 {
	for _, longer := range periods() {
		if longer.seconds > p {
			return longer.seconds
		}
	}
	return day
}

// When schedules fire, and how fast their jobs follow each other. Spreads are standard
// deviations of logarithms, times are in seconds.
const (
	// roundShare is the share of projects that are due on the quarter of an hour.
	roundShare = 0.3
	// delay is the median time from the firing to the first job, in which the import runs.
	delay, delaySpread = 20.0, 1.0
	// pace is the median time from one channel's job to the next one's, which the worker servers limit.
	// maxWindow bounds the time from the first to the last.
	pace, paceSpread = 8.0, 1.0
	maxWindow        = 900.0
	// imports is the probability that a firing imports new data. A schedule with a period of a
	// day always does.
	imports = 0.3
	// jobSpread is the spread of the work of one channel's jobs.
	jobSpread = 0.3
)

// drawPeriod draws the period of a project.
func drawPeriod(rng *rand.Rand) float64 {
	share := rng.Float64()
	for _, p := range periods() {
		if share < p.share {
			return p.seconds
		}
		share -= p.share
	}
	return day
}

// drawPhase draws when a schedule of the given period fires first.
func drawPhase(rng *rand.Rand, period float64) float64 {
	phase := period * rng.Float64()
	if rng.Float64() < roundShare {
		phase -= math.Mod(phase, 900)
	}
	return phase
}

// firings is the remaining schedule of a project. It is a value: a copy is independent
// and returns the same firings.
type firings struct {
	pcg    rand.PCG
	due    float64
	period float64
}

// firing is one run of a schedule.
type firing struct {
	at      float64
	imports bool
}

// next returns the next firing before the end of the workload. In an hour of low
// load, a schedule that is due does not always fire.
func (f *firings) next(cfg *Config) (run firing, ok bool) {
	rng := rand.New(&f.pcg)
	for f.due < cfg.Duration {
		run = firing{at: f.due}
		f.due += f.period
		fires := rng.Float64() < scheduleHours().at(run.at, cfg.StartHour)
		run.imports = rng.Float64() < imports || f.period >= day
		if fires {
			return run, true
		}
	}
	return firing{}, false
}

// count returns the number of remaining firings.
func (f firings) count(cfg *Config) int {
	n := 0
	for _, ok := f.next(cfg); ok; _, ok = f.next(cfg) {
		n++
	}
	return n
}

// schedule is the process that fires a project's channels periodically.
type schedule struct {
	project int
	firings firings
	due     firing
}

func (s *schedule) run(g *Generator, at float64, _ *trace.Job) (bool, float64) {
	if s.due.imports && !g.cfg.Static {
		g.population[s.project].imports++
	}
	// Even a late firing ends within the workload.
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

// export is the process of one firing: a low job for each channel, spread over a window.
type export struct {
	project       int
	channel       int
	begin, window float64
}

// next returns when the next channel's job is sent: a random time in the channel's part of the window.
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
