// Package pool holds the upstreams and their live state, and chooses the upstream of each job.
//
// It is a state machine without a clock, lock or goroutine. Time and random numbers are arguments, so that the sidecar and
// the simulator run the same code. It is not safe for concurrent use; internal/balancer guards it with one mutex.
//
// Three questions decide whether an upstream gets jobs, each answered in one place:
//
//   - Is it alive? Package health has its breaker and its suspicion, with their states.
//   - Is what it reports credible? See figures and norms in credible.go.
//   - How loaded is it? See load in load.go.
//
// A member is one upstream with the state behind these three questions and the known contents of its cache. An upstream
// joins the set, drains or stops, and leaves the set. After that it stays a member until its last job has ended, and
// longer if its breaker has opened.
//
// Claim finds the eligible upstreams, lets the policy pick one and counts the job there, in one step, and returns an
// Assignment. The holder ends it with Assignment.Done, which uncounts the job and learns from the attempt. The reasons
// against an upstream are one ordered list, Reason, which Claim, AllTried, States and Explain share.
package pool

import (
	"time"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/prompts"
)

// Pool holds the upstreams and their live state.
type Pool struct {
	cfg      Config
	breakers health.Config
	heavy    map[uint64]bool // projects whose jobs are heavy

	members   map[string]*member // by address, including upstreams that left the set and are not forgotten yet
	set       []*member          // the current set, sorted by address
	outside   []*member          // members that left the set, to be forgotten; some have joined again
	checked   int                // number of members in outside that Forget has considered since the last Replace
	accepting acceptance

	learned
	norms      norms
	watch      health.Watch
	inFlight   int
	reported   []*member  // upstreams that have reported since the last call of Withdrawals
	nextSearch time.Time  // Withdrawals does not search before this time
	scratch    candidates // of the last claim; the next reuses it
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

// SetSettings replaces the settings. The state of the upstreams stays. If Detector is nil, their overload detectors
// stay, too; otherwise each gets a new one, which starts by admitting all jobs.
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

// TakePolls returns the upstreams that should be polled at once, because they owe more responses than usual. The next
// call does not return them again.
func (p *Pool) TakePolls() []string { return p.watch.TakePolls() }

// markReported makes the next call of Withdrawals consider an upstream.
func (p *Pool) markReported(m *member) {
	if p.cfg.Withdraw && !m.inReported {
		m.inReported, p.reported = true, append(p.reported, m)
	}
}

// learned holds the estimates that a pool has learned from its jobs.
type learned struct {
	projects   projectStates
	fetches    *fetchModel // fetch times of projects' data
	firstBytes average     // time to first byte where the data is cached
	lengths    lengths     // durations of jobs
	oneOffs    average     // share of jobs whose project was new
	prompts    *prompts.Model
}

func newLearned() learned {
	return learned{
		projects:   newProjectStates(learnedProjects),
		fetches:    newFetchModel(),
		firstBytes: average{mean: logOf(firstBytePrior), n: 1},
		lengths:    newLengths(),
		oneOffs:    average{mean: 0.5, n: 10},
		prompts:    prompts.NewModel(),
	}
}

// fetch returns the expected fetch time of a job's data in seconds. For a set of projects it is that of the part that
// places the job: jobs with other sets share the other parts, and if the whole set counted, jobs would wait too long
// for upstreams that have it.
func (l *learned) fetch(n *need) float64 {
	if n.prompt != nil {
		return l.prompts.ReadTime(n.prompt)
	}
	return l.fetches.expected(n.project.size())
}
