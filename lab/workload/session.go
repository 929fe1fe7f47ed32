package workload

import (
	"math"
	"math/rand/v2"

	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// How people work. Spreads are standard deviations of logarithms, times are in seconds.
const (
	// sessionJobs is the median number of jobs after a session's prefetch,
	// maxSession the largest number.
	sessionJobs, sessionSpread = 6.0, 1.0
	maxSession                 = 200
	// think is the median time between two jobs.
	think, thinkSpread = 15.0, 1.0
	// chained is the probability that a job after the first depends on the job before it. This makes
	// 15 % of all high jobs dependent (the thesis, 7.4.7). A dependent job is due chainGap after
	// the other one, because the web backend sends both.
	chained, chainGap = 0.17, 0.2
	// viewSpread is the spread of the work of jobs on projects of the same size.
	viewSpread = 1.6
)

// sessionSize draws the number of jobs of a session, its prefetch included.
func sessionSize(rng *rand.Rand) int {
	return 1 + min(max(1, int(logNormal(rng, sessionJobs, sessionSpread))), maxSession)
}

// arrivals is the process that starts sessions until they have made all high jobs.
type arrivals struct {
	times instants
	curve curve
	sizes *rand.Rand
	// jobs is the number of jobs that no session has yet.
	jobs int
}

// newArrivals spreads the sessions that make the given number of jobs over the duration.
func newArrivals(cfg *Config, jobs int) *arrivals {
	sizes := func() *rand.Rand { return rand.New(source(cfg.Seed, streamSessions, 1)) }
	sessions := 0
	for rng, left := sizes(), jobs; left > 0; sessions++ {
		left -= sessionSize(rng)
	}
	return &arrivals{
		times: instants{rng: rand.New(source(cfg.Seed, streamArrivals, 0)), left: sessions},
		curve: officeHours().curve(cfg.Duration, cfg.StartHour),
		sizes: sizes(),
		jobs:  jobs,
	}
}

// next returns when the next session starts, never after the last.
func (a *arrivals) next() float64 {
	share, ok := a.times.next()
	if !ok {
		return never
	}
	return a.curve.at(share)
}

func (a *arrivals) run(g *Generator, at float64, _ *trace.Job) (bool, float64) {
	size := min(sessionSize(a.sizes), a.jobs)
	a.jobs -= size
	g.queue.Add(at, 0, &session{project: g.popular.pick(g.sessions), left: size})
	return false, a.next()
}

// session is the process of one person who works on one project: a prefetch when the project
// is opened, then jobs with pauses to think.
type session struct {
	project int
	left    int
	// line is the trace line of the last job, 0 before the first job after the prefetch.
	line    trace.Line
	opened  bool
	chained bool
}

func (s *session) run(g *Generator, at float64, job *trace.Job) (bool, float64) {
	if s.opened {
		g.fillHigh(job, s.project, g.sessions)
		if s.chained {
			job.After = s.line
		}
		s.line = trace.Line(g.emitted + 1)
	} else {
		g.fill(job, s.project, selection.High, g.sessions)
		job.Prefetch, s.opened = true, true
	}
	s.left--
	if s.left == 0 {
		return true, never
	}
	gap := logNormal(g.sessions, think, thinkSpread)
	if s.chained = s.line > 0 && g.sessions.Float64() < chained; s.chained {
		gap = chainGap
	}
	// A session that would last longer than the workload gets shorter gaps.
	return true, at + min(gap, (g.cfg.Duration-at)/float64(s.left+1))
}

// instants draws uniform random numbers from 0 to 1 in ascending order, one by one.
type instants struct {
	rng  *rand.Rand
	left int
	last float64
}

// next draws the smallest of the n remaining numbers: it lies 1 - V^(1/n) of the way from the last one to 1.
func (i *instants) next() (share float64, ok bool) {
	if i.left == 0 {
		return 0, false
	}
	i.last = 1 - (1-i.last)*math.Pow(1-i.rng.Float64(), 1/float64(i.left))
	i.left--
	return i.last, true
}
