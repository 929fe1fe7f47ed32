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
// channels, sessions or shared rules, and a job's work does not depend on the size of its
// project. The load is about as high as on the thesis's day with the same number of jobs.
const (
	// sourceOn and sourceOff are the median times for which a source is on and off, in
	// seconds. sourceIndex is the tail index of both.
	sourceOn, sourceOff, sourceIndex = 60.0, 240.0, 1.4
	// sourceZipf is the exponent of the rates: while both are on, the source of rank r
	// sends 1/r^sourceZipf times as many jobs as the source of rank 1.
	sourceZipf = 0.8
	// sourceWork is the median work of a job in core-seconds, and sourceBytes the median
	// size of a project's data; each has its tail index.
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

// span is a time for which a source is on.
type span struct{ begin, length float64 }

// drawSpans draws when a source is on, until end, and the sum of these times. The first period has
// already started at 0.
func drawSpans(rng *rand.Rand, end float64) (spans []span, sum float64) {
	on, left := rng.Float64() < sourceOn/(sourceOn+sourceOff), rng.Float64()
	for at := 0.0; at < end; on, left = !on, 1 {
		median := sourceOff
		if on {
			median = sourceOn
		}
		length := left * pareto(rng, median, sourceIndex)
		if on {
			spans = append(spans, span{at, min(length, end-at)})
			sum += spans[len(spans)-1].length
		}
		at += length
	}
	return spans, sum
}

// sourceJobs is the process that sends the jobs of all sources.
type sourceJobs struct {
	rng  *rand.Rand
	left []sourceJob // in order of time
}

type sourceJob struct {
	at      float64
	project int
}

// beginSources draws a source for each job, in proportion to the jobs that each sends on average, and a time at
// which the source is on.
func (g *Generator) beginSources() error {
	rng := rand.New(source(g.cfg.Seed, streamSources, 0))
	s := &sourceJobs{rng: rand.New(source(g.cfg.Seed, streamJobs, 0))}
	on, sums, sends := make([][]span, g.cfg.projects()), make([]float64, g.cfg.projects()), chooser{}
	for i := range on {
		g.population = append(g.population, sourceProject(rng, i, g.cfg.MaxBytes))
		on[i], sums[i] = drawSpans(rng, g.cfg.Duration)
		sends.add(g.population[i].Popularity * sums[i])
	}
	for range g.cfg.Jobs {
		project, at := sends.pick(rng), 0.0
		left := rng.Float64() * sums[project]
		for _, span := range on[project] {
			at = span.begin + min(left, span.length)
			if left -= span.length; left < 0 {
				break
			}
		}
		s.left = append(s.left, sourceJob{at, project})
	}
	slices.SortFunc(s.left, func(a, b sourceJob) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.project, b.project)) })
	g.queue.Add(s.left[0].at, 0, s)
	return nil
}

func (s *sourceJobs) run(g *Generator, _ float64, job *trace.Job) (bool, float64) {
	g.fill(job, s.left[0].project, selection.Low, s.rng)
	work := min(pareto(s.rng, sourceWork, sourceWorkIndex), g.cfg.MaxWork)
	job.Operators, job.Output = rounded((1-outputShare)*work), rounded(outputShare*work)
	if s.rng.Float64() < g.cfg.HighShare {
		job.Priority, job.Timeouts = selection.High, timeouts[selection.High]
	}
	if s.left = s.left[1:]; len(s.left) == 0 {
		return true, never
	}
	return true, s.left[0].at
}
