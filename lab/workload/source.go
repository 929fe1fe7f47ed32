package workload

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// The pattern sources: each project is a source that sends jobs at its own rate while it
// is on, and none while it is off. Both times have Pareto tails, so that the sum of many
// sources is bursty at every time scale (Willinger et al. 1997). There are no schedules,
// channels, sessions or shared rules, and a job's work does not follow the size of its
// project. The load is about that of the thesis's day with the same number of jobs.
const (
	// sourceOn and sourceOff are the median times for which a source is on and off, in
	// seconds, sourceIndex is that of their tails.
	sourceOn, sourceOff, sourceIndex = 60.0, 240.0, 1.4
	// sourceZipf is the exponent of the rates: while they are on, the source of rank r
	// sends 1/r^sourceZipf times as many jobs as the first.
	sourceZipf = 0.8
	// sourceWork is the median work of a job in core-seconds, and sourceBytes the median
	// size of a project's data, with the indices of their tails.
	sourceWork, sourceWorkIndex   = 0.4, 0.95
	sourceBytes, sourceBytesIndex = 8e6, 0.9
)

// sourceProject draws the project of a rank, counted from 0.
func sourceProject(rng *rand.Rand, rank int, maxBytes float64) projectModel {
	bytes := min(pareto(rng, sourceBytes, sourceBytesIndex), maxBytes)
	return projectModel{
		ID:         trace.Project(strconv.Itoa(firstID + rank)),
		Bytes:      max(1, int64(bytes)),
		Load:       rounded(logNormal(rng, bytes/fetchRate, fetchSpread)),
		Popularity: math.Pow(float64(rank+1), -sourceZipf),
		Period:     day,
		Channels:   []channelModel{{Operators: (1 - outputShare) * sourceWork, Output: outputShare * sourceWork}},
		view:       sourceWork,
	}
}

// toggle is when a source goes on or off.
type toggle struct {
	at     float64
	source int
	on     bool
}

// drawToggles draws when a source goes on and off, up to the end. It starts
// somewhere within a period.
func drawToggles(rng *rand.Rand, source int, end float64) []toggle {
	on := rng.Float64() < sourceOn/(sourceOn+sourceOff)
	var all []toggle
	period := func() float64 {
		if on {
			return pareto(rng, sourceOn, sourceIndex)
		}
		return pareto(rng, sourceOff, sourceIndex)
	}
	if on {
		all = append(all, toggle{0, source, true})
	}
	for at := rng.Float64() * period(); at < end; at += period() {
		on = !on
		all = append(all, toggle{at, source, on})
	}
	return all
}

// sourceJobs sends the jobs of all sources. The number of jobs up to an instant
// follows the sum of the rates up to it.
type sourceJobs struct {
	rng     *rand.Rand
	shares  instants
	toggles []toggle // that are still to come
	active  weights
	sum     float64 // the sum of the rates over the whole time
	done    float64 // that up to at
	at      float64
}

func (g *Generator) beginSources() error {
	rng := rand.New(source(g.cfg.Seed, streamSources, 0))
	s := &sourceJobs{
		rng:    rand.New(source(g.cfg.Seed, streamJobs, 0)),
		shares: instants{rng: rand.New(source(g.cfg.Seed, streamArrivals, 0)), left: g.cfg.Jobs},
		active: make(weights, g.cfg.projects()),
	}
	for i := range g.cfg.projects() {
		g.population = append(g.population, sourceProject(rng, i, g.cfg.MaxBytes))
		s.toggles = append(s.toggles, drawToggles(rng, i, g.cfg.Duration)...)
	}
	if len(s.toggles) == 0 { // so few and so slow sources that none goes on
		s.toggles = []toggle{{0, 0, true}}
	}
	slices.SortStableFunc(s.toggles, func(a, b toggle) int { return cmp.Compare(a.at, b.at) })
	for _, t := range s.toggles {
		left := g.population[t.source].Popularity * (g.cfg.Duration - t.at)
		if !t.on {
			left = -left
		}
		s.sum += left
	}
	g.queue.Add(s.next(g), 0, s)
	return nil
}

// next is when the next job is sent.
func (s *sourceJobs) next(g *Generator) float64 {
	share, ok := s.shares.next()
	if !ok {
		return never
	}
	due := share * s.sum
	for {
		end := g.cfg.Duration
		if len(s.toggles) > 0 {
			end = s.toggles[0].at
		}
		if rate := s.active.sum(); rate > 0 {
			if at := s.at + (due-s.done)/rate; at <= end || len(s.toggles) == 0 {
				s.done, s.at = due, min(at, g.cfg.Duration)
				return s.at
			}
			s.done += rate * (end - s.at)
		}
		if len(s.toggles) == 0 { // a rounding error away from the last job
			return g.cfg.Duration
		}
		s.at = end
		s.turn(g)
	}
}

// turn lets the next source go on or off. One that goes on may have new data.
func (s *sourceJobs) turn(g *Generator) {
	t := s.toggles[0]
	s.toggles = s.toggles[1:]
	rate := 0.0
	if t.on {
		rate = g.population[t.source].Popularity
		if !g.cfg.Static && t.at > 0 && s.rng.Float64() < imports {
			g.population[t.source].imports++
		}
	}
	s.active[t.source] = rate
}

func (s *sourceJobs) run(g *Generator, _ float64, job *trace.Job) (bool, float64) {
	project := s.active.pick(s.rng)
	g.fill(job, project, s.rng)
	work := min(pareto(s.rng, sourceWork, sourceWorkIndex), g.cfg.MaxWork)
	job.Operators, job.Output = rounded((1-outputShare)*work), rounded(outputShare*work)
	job.Priority, job.Timeouts = selection.Low, lowTimeouts()
	if s.rng.Float64() < g.cfg.HighShare {
		job.Priority, job.Timeouts = selection.High, highTimeouts()
	}
	return true, s.next(g)
}
