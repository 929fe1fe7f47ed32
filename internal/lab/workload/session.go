package workload

import (
	"math"
	"math/rand/v2"

	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/trace"
)

// SessionConfig shapes what people do. Spreads are standard deviations of
// logarithms, times are in seconds.
type SessionConfig struct {
	// Hours weighs the hours of the day.
	Hours Hours `yaml:"hours"`
	// Jobs is the median number of jobs that follow a session's prefetch,
	// MaxJobs the largest number.
	Jobs       float64 `yaml:"jobs"`
	JobsSpread float64 `yaml:"jobs_spread"`
	MaxJobs    int     `yaml:"max_jobs"`
	// Think is the median time between two jobs.
	Think       float64 `yaml:"think"`
	ThinkSpread float64 `yaml:"think_spread"`
	// Chained is the chance that a job after the first waits for the one before.
	Chained float64 `yaml:"chained"`
	// Chain is how long after the one before such a job is due: the web backend
	// sends both.
	Chain float64 `yaml:"chain"`
	// WorkSpread is how much jobs on equal projects differ. MaxWork bounds
	// them, in core-seconds.
	WorkSpread float64 `yaml:"work_spread"`
	MaxWork    float64 `yaml:"max_work"`
}

func defaultSession() SessionConfig {
	return SessionConfig{
		Hours:       officeHours(),
		Jobs:        6,
		JobsSpread:  1,
		MaxJobs:     200,
		Think:       15,
		ThinkSpread: 1,
		Chained:     0.17, // which makes 15 % of all high jobs (the thesis, 7.4.7)
		Chain:       0.2,
		WorkSpread:  1.6,
		MaxWork:     430,
	}
}

func (c *SessionConfig) check(f *settings.Faults) {
	f.Between("jobs", c.Jobs, 1, 1e6)
	f.Between("jobs_spread", c.JobsSpread, 0, 5)
	f.Between("max_jobs", float64(c.MaxJobs), 1, 1e6)
	f.Between("think", c.Think, 0, day)
	f.Between("think_spread", c.ThinkSpread, 0, 5)
	f.Between("chained", c.Chained, 0, 1)
	f.Between("chain", c.Chain, 0, day)
	f.Between("work_spread", c.WorkSpread, 0, 5)
	f.Between("max_work", c.MaxWork, 0, day)
	c.Hours.check("hours", f)
}

// size draws how many jobs a session has, its prefetch included.
func (c *SessionConfig) size(rng *rand.Rand) int {
	return 1 + min(max(1, int(logNormal(rng, c.Jobs, c.JobsSpread))), c.MaxJobs)
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
		left -= cfg.Session.size(rng)
	}
	return &arrivals{
		times: instants{rng: rand.New(source(cfg.Seed, streamArrivals, 0)), left: sessions},
		curve: cfg.Session.Hours.curve(cfg.Duration, cfg.StartHour),
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
	size := min(g.cfg.Session.size(a.sizes), a.jobs)
	a.jobs -= size
	g.queue.push(at, &session{project: g.popular.pick(g.sessions), left: size})
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
	c := &g.cfg.Session
	if s.opened {
		g.fillHigh(job, s.project, g.sessions)
		if s.chained {
			job.After = s.line
		}
		s.line = g.line()
	} else {
		g.fillPrefetch(job, s.project, g.sessions)
		s.opened = true
	}
	s.left--
	if s.left == 0 {
		return true, never
	}
	gap := logNormal(g.sessions, c.Think, c.ThinkSpread)
	if s.chained = s.line > 0 && g.sessions.Float64() < c.Chained; s.chained {
		gap = c.Chain
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
