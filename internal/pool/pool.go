// Package pool has the upstreams and their live state, and chooses among
// them: membership, jobs in flight, reports with their age, health,
// drain, and what was learned about projects.
//
// It is a machine: it owns no clock, lock or goroutine. Time and random numbers
// are arguments, so that the sidecar and the simulator run the same code. It is
// not safe for concurrent use; internal/balancer guards it with one mutex.
//
// From the bottom up:
//
//   - health is the breaker of one upstream. The ends of jobs and the reports go in as evidence, and
//     what comes out is until when it is shut, and why in words. A Gate counts
//     failures and opens; health decides when it is asked, and how long it is open.
//   - suspicion is the evidence that an upstream takes jobs and answers none.
//   - load is how many jobs are there: the last report, and this sidecar's own jobs since.
//   - member is one upstream with all of these; projectState is one project.
//   - need is the data of one job: one project, several, or a prompt, of which internal/prompts knows what is cached where.
//   - Reason is the one ordered list of what keeps an upstream from a job. eligible looks at
//     the upstreams once and takes those with the least reason; States, AllTried and Explain
//     read the same Reason.
//   - Claim filters, picks and counts in one step and returns an Assignment. The
//     holder ends it with Assignment.Done, which takes the count back and learns
//     from the attempt.
package pool

import (
	"example.org/pilotfish/internal/health"
)

// Pool is the upstreams and their live state.
type Pool struct {
	cfg      Config
	breakers health.Config
	heavy    map[uint64]bool // projects whose jobs are heavy

	members map[string]*member // by address, including those that left and are not forgotten
	set     []*member          // the current set, sorted by address
	sets    uint64             // counts the sets
	counted takers

	learned
	norms    norms
	watch    health.Watch
	inFlight int
	memory   candidates // of the last claim, used again by the next
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

// SetSettings makes the pool pick by other settings from now on. What it knows
// of the upstreams' load, health and caches stays. Their detectors stay as well, with
// what they have seen, if Detector is nil; new ones begin at level 1.
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

// InFlight is the number of open assignments.
func (p *Pool) InFlight() int { return p.inFlight }

// Open is the number of open assignments of one project.
func (p *Pool) Open(project uint64) int { return p.projects.find(project).open }

// Len is the number of upstreams in the set.
func (p *Pool) Len() int { return len(p.set) }

// Poll returns the addresses of the upstreams that should report at once, each once: they owe responses for longer than is
// usual.
func (p *Pool) Poll() []string { return p.watch.Poll() }
