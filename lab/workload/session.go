package workload

import (
	"math"
	"math/rand/v2"

	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// What people do. Spreads are standard deviations of logarithms, times are in seconds.
const (
	// sessionJobs is the median number of jobs that follow a session's prefetch,
	// maxSession the largest number.
	sessionJobs, sessionSpread = 6.0, 1.0
	maxSession                 = 200
	// think is the median time between two jobs.
	think, thinkSpread = 15.0, 1.0
	// chained is the chance that a job after the first waits for the one before, which makes
	// 15 % of all high jobs (the thesis, 7.4.7). It is due so soon after it: the web
	// backend sends both.
	chained, chainGap = 0.17, 0.2
	// viewSpread is how much jobs on equal projects differ.
	viewSpread = 1.6
)

// sessionSize draws how many jobs a session has, its prefetch included.
func sessionSize(rng *rand.Rand) int {
	return 1 + min(max(1, int(logNormal(rng, sessionJobs, sessionSpread))), maxSession)
}

// arrivals begins sessions until they have made all high jobs.
type arrivals struct {
	times instants
	curve curve
	sizes *rand.Rand
	// jobs is how many are left for the sessions to come.
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

// next is when the next session begins; never if there are enough.
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

// session is one person at work on one project: a prefetch when it is opened,
// then jobs with thinking time.
type session struct {
	project int
	left    int
	// line is the last job's line; 0 before the first job after the prefetch.
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

// instants are uniform random shares, 0 to 1, in ascending order, drawn one by one.
type instants struct {
	rng  *rand.Rand
	left int
	last float64
}

// next draws the smallest of the n that are left: 1 - V^(1/n) of what remains.
func (i *instants) next() (share float64, ok bool) {
	if i.left == 0 {
		return 0, false
	}
	i.last = 1 - (1-i.last)*math.Pow(1-i.rng.Float64(), 1/float64(i.left))
	i.left--
	return i.last, true
}
