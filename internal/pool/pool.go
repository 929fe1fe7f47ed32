// Package pool has the upstreams and their live state, and chooses among them.
//
// It is a state machine without a clock, lock or goroutine. Time and random numbers are arguments, so that the sidecar and
// the simulator run the same code. It is not safe for concurrent use; internal/balancer guards it with one mutex.
//
// Three questions decide about an upstream, each in one place:
//
//   - Is it alive? Package health has its breaker and its suspicion, with their states.
//   - Is what it reports credible? See figures and norms in credible.go.
//   - How loaded is it? See load in load.go.
//
// A member has the three of one upstream, and what is known of its cache. An upstream in the set joins, drains or stops, and
// leaves; after that it is a member until its last job has ended and its breaker is forgotten.
//
// Claim finds the eligible upstreams, lets the policy pick one and counts the job there, in one step, and returns an
// Assignment. The holder ends it with Assignment.Done, which uncounts the job and learns from the attempt. The reasons
// against an upstream are one ordered list, Reason; Claim, AllTried, States and Explain read the same.
package pool

import (
	"time"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/prompts"
)

// Pool is the upstreams and their live state.
type Pool struct {
	cfg      Config
	breakers health.Config
	heavy    map[uint64]bool // projects whose jobs are heavy

	members map[string]*member // by address, including those that left and are not forgotten
	set     []*member          // the current set, sorted by address
	counted takers

	learned
	norms     norms
	watch     health.Watch
	inFlight  int
	reported  []*member  // upstreams that have reported since the last call of Withdrawals
	noneUntil time.Time  // Withdrawals does not search before this time
	memory    candidates // of the last claim; the next reuses it
}

// New returns an empty pool.
func New(cfg Config) (*Pool, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Pool{
		cfg:      cfg,
		breakers: health.Config{Settings: cfg.Breaker, Gate: cfg.Gate, Rand: cfg.Rand},
		heavy:    cfg.Heavy.keys(),
		members:  make(map[string]*member),
		learned:  newLearned(),
	}, nil
}

// SetSettings replaces the settings. What is known of the upstreams stays. If Detector is nil, their detectors stay, too; new
// detectors start at level 1.
func (p *Pool) SetSettings(s Settings) {
	if s.Policy == nil || s.Interval <= 0 {
		panic("BUG: pool: settings without a policy, or with an interval that is not positive")
	}
	if s.Detector == nil {
		s.Detector = p.cfg.Detector
	} else {
		for _, m := range p.members {
			m.load.detector, m.load.level = s.Detector(), 1
		}
	}
	p.cfg.Settings, p.breakers.Settings, p.heavy = s, s.Breaker, s.Heavy.keys()
}

// InFlight returns the number of open assignments.
func (p *Pool) InFlight() int { return p.inFlight }

// Open returns the number of open assignments of one project.
func (p *Pool) Open(project uint64) int { return p.projects.find(project).open }

// Len returns the number of upstreams in the set.
func (p *Pool) Len() int { return len(p.set) }

// Poll returns the upstreams that should report at once, each once: they owe responses for longer than is usual.
func (p *Pool) Poll() []string { return p.watch.Poll() }

// note makes the next call of Withdrawals consider an upstream.
func (p *Pool) note(m *member) {
	if p.cfg.Withdraw && !m.noted {
		m.noted, p.reported = true, append(p.reported, m)
	}
}

// learned is what a pool has learned from its jobs.
type learned struct {
	projects projectStates
	fetches  *fetchModel // fetch times of projects' data
	answers  average     // time to first byte where the data is cached
	lengths  lengths     // durations of jobs
	once     average     // share of jobs whose project had not been seen
	prompts  *prompts.Model
}

func newLearned() learned {
	return learned{
		projects: newProjectStates(learnedProjects),
		fetches:  newFetchModel(),
		answers:  average{mean: logOf(answerPrior), n: 1},
		lengths:  newLengths(),
		once:     average{mean: 0.5, n: 10},
		prompts:  prompts.NewModel(),
	}
}

// fetch is the expected fetch time of a job's data in seconds. Of a set, it is that of the part that places the job: jobs of
// other sets share the rest, and at the price of the whole set jobs would wait where they should go elsewhere.
func (l *learned) fetch(n *need) float64 {
	if n.prompt != nil {
		return l.prompts.ReadTime(n.prompt)
	}
	return l.fetches.expected(n.project.size())
}
