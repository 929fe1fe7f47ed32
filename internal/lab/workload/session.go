package workload

import (
	"math"
	"math/rand/v2"

	"example.org/pilotfish/pkg/trace"
)

// SessionConfig shapes what people do. Spreads are standard deviations of
// logarithms. The zero value of each field means its default.
type SessionConfig struct {
	// Hours weighs the hours of the day; office hours by default.
	Hours Hours `yaml:"hours"`
	// Jobs is the median number of jobs that follow a session's prefetch: 6,
	// with a spread of 1 and at most 200.
	Jobs       float64 `yaml:"jobs"`
	JobsSpread float64 `yaml:"jobs_spread"`
	MaxJobs    int     `yaml:"max_jobs"`
	// Think is the median time between two jobs: 15 s, with a spread of 1.
	Think       float64 `yaml:"think"`
	ThinkSpread float64 `yaml:"think_spread"`
	// Chained is the chance that a job after the first waits for the one
	// before: 0.17, which makes 15 % of all high jobs (the thesis, 7.4.7).
	Chained float64 `yaml:"chained"`
	// Chain is how long after that one such a job is due: 0.2 s, as the web
	// backend sends both.
	Chain float64 `yaml:"chain"`
	// WorkSpread is how much jobs on equal projects differ: 1.6. MaxWork, 430
	// core-seconds, bounds them.
	WorkSpread float64 `yaml:"work_spread"`
	MaxWork    float64 `yaml:"max_work"`
}

func (c SessionConfig) withDefaults() SessionConfig {
	orDefault(&c.Hours, officeHours())
	orDefault(&c.Jobs, 6)
	orDefault(&c.JobsSpread, 1)
	orDefault(&c.MaxJobs, 200)
	orDefault(&c.Think, 15)
	orDefault(&c.ThinkSpread, 1)
	orDefault(&c.Chained, 0.17)
	orDefault(&c.Chain, 0.2)
	orDefault(&c.WorkSpread, 1.6)
	orDefault(&c.MaxWork, 430)
	return c
}

func (c *SessionConfig) validate() error {
	for _, f := range [...]struct {
		field            string
		value, low, high float64
	}{
		{"jobs", c.Jobs, 1, 1e6}, {"jobs_spread", c.JobsSpread, 0, 5}, {"max_jobs", float64(c.MaxJobs), 1, 1e6},
		{"think", c.Think, 0, day}, {"think_spread", c.ThinkSpread, 0, 5},
		{"chained", c.Chained, 0, 1}, {"chain", c.Chain, 0, day},
		{"work_spread", c.WorkSpread, 0, 5}, {"max_work", c.MaxWork, 0, day},
	} {
		if err := inRange("session."+f.field, f.value, f.low, f.high); err != nil {
			return err
		}
	}
	return c.Hours.validate("session.hours")
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

// next is when the next session begins; never when there are enough.
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
	// line is that of the last job; 0 before the first one after the prefetch.
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
	// A session that would outlast the workload is hurried.
	return true, at + min(gap, (g.cfg.Duration-at)/float64(s.left+1))
}

// instants are sorted, uniform shares of a whole, 0 to 1, drawn one by one.
type instants struct {
	rng  *rand.Rand
	left int
	last float64
}

// next draws the smallest of those left: 1 - V^(1/n) of what remains.
func (i *instants) next() (share float64, ok bool) {
	if i.left == 0 {
		return 0, false
	}
	i.last = 1 - (1-i.last)*math.Pow(1-i.rng.Float64(), 1/float64(i.left))
	i.left--
	return i.last, true
}
