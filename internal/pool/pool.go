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
	"slices"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/prompts"
	"example.org/pilotfish/pkg/selection"
)

// Pool is the upstreams and their live state.
type Pool struct {
	cfg     Config
	members map[string]*member // by address, including those that left and are not forgotten
	set     []*member          // the current set, sorted by address
	fetches *fetchModel        // how long projects' data takes to fetch
	answers average            // how long an answer takes to begin where it is cached
	lengths average            // how long a job takes once it runs
	prompts *prompts.Model     // what was learned from prompts
	once    average            // of jobs whose project had not been seen

	projects projectStates
	sets     uint64 // counts the sets

	number   uint64 // claims so far
	inFlight int
	counted  [2]takers // of ordinary and of heavy jobs
	mixed    bool      // some upstreams are for heavy jobs, and some are not

	heavyProjects map[uint64]bool
	ask           []string // upstreams that should report at once
	heard         bool     // something, since jobs were last reconsidered

	suspects map[*member]struct{} // those with jobs that are suspect; some no longer are
	owing    []*member            // all that owe responses; some no longer do

	mostCores, mostPace float64   // what is believed of an upstream, by those of all
	uncompared          int       // reports since
	slownesses          []float64 // the parts of all upstreams that have enough answers, sorted
	untimed             int       // answers since
	service             float64   // how long a core takes for a job, in the median, in seconds; 0 is unknown

	near   []*member        // of the last claim, used again by the next
	best   []placed         // likewise
	memory candidates       // the same
	costs  []selection.Cost // the same
	shadow []selection.Cost // the same, of the shadow
	needs  need             // the same
	one    [1]intake.Part   // the same
	parts  []intake.Part    // the same
}

// candidates are the upstreams that a job may go to, and what a policy sees of it and of them.
type candidates struct {
	job     selection.Job
	need    *need
	members []*member
	views   []selection.View // of the members, in their order
	reason  Reason           // the least there is against an upstream, those of the members
	reasons []Reason         // of all that were looked at
	count   rules
}

// rules says which rules count. What falls on too many upstreams is more likely our fault, or the network's.
type rules struct {
	suspicion bool // not where more than half are suspect
	breakers  bool // not where all are shut: that is panic mode
	early     bool // a breaker is half open after its first open time, whatever that has grown to
}

// remove takes out candidate i.
func (c *candidates) remove(i int) {
	c.members = slices.Delete(c.members, i, i+1)
	c.views = slices.Delete(c.views, i, i+1)
}

// New returns an empty pool.
func New(cfg Config) (*Pool, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Pool{
		cfg:     cfg,
		members: make(map[string]*member), suspects: make(map[*member]struct{}),
		fetches: newFetchModel(),
		prompts: prompts.NewModel(),
		answers: average{mean: logOf(answerPrior), n: 1},
		lengths: average{mean: logOf(answerPrior), n: 1},
		once:    average{mean: 0.5, n: 10},

		projects: newProjectStates(learnedProjects), heavyProjects: cfg.Heavy.keys(),
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
			m.detector, m.level = s.Detector(), 1
		}
	}
	p.cfg.Settings, p.heavyProjects = s, s.Heavy.keys()
}

// fetch is how long it is expected to take to fetch what a job needs, in seconds; of a set, the part that places it, as
// if that were all. The rest only tells where there is more of the set: jobs of other sets share it, and with all of it
// as the price jobs wait where they should go elsewhere.
func (p *Pool) fetch(n *need) float64 {
	if n.prompt != nil {
		return p.prompts.ReadTime(n.prompt)
	}
	return p.fetches.expected(n.project.size())
}

// forgetIfGone forgets an upstream that left once its last job has ended, and its breaker has
// not opened for openMax: it may come back to fail again.
func (p *Pool) forgetIfGone(now time.Time, m *member) {
	if !m.inSet && m.load.inFlight == 0 && (m.health.trips == 0 || now.Sub(m.since) >= p.cfg.Breaker.openMax()) {
		delete(p.members, m.Address)
	}
}

// InFlight is the number of open assignments.
func (p *Pool) InFlight() int { return p.inFlight }

// Open is the number of open assignments of one project.
func (p *Pool) Open(project uint64) int { return p.projects.find(project).open }

// Len is the number of upstreams in the set.
func (p *Pool) Len() int { return len(p.set) }
