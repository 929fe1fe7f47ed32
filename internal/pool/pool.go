// Package pool keeps the upstreams and their live state, and chooses among
// them: membership, jobs in flight, reports with their age, eligibility,
// drain, and what was learned about projects.
//
// It is a machine: it owns no clock, lock or goroutine. Time and random numbers
// are arguments, so that the sidecar and the simulator run the same code. It is
// not safe for concurrent use; internal/balancer guards it with one mutex.
//
// Claim filters, picks and counts in one step and returns an Assignment. The
// holder ends it with Assignment.Done, which takes the count back and learns
// from the attempt.
package pool

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/pkg/overload"
	"example.org/pilotfish/pkg/selection"
)

// How long what an upstream said of itself counts, in intervals between two
// reports. Load outlives two polls in a row that fail. A cache listing outlives
// it, because data does not leave a cache as fast as load changes.
const (
	loadIntervals    = 3
	ListingIntervals = 4 * loadIntervals
)

// Settings is the part of a Config that may change while jobs run. All are required.
type Settings struct {
	// Policy picks among the eligible upstreams.
	Policy selection.Policy
	// Detector makes the overload detector of an upstream.
	Detector func() overload.Detector
	// Interval is the mean time between two reports of one upstream. The load in
	// a report counts for three intervals, a cache listing for twelve.
	Interval time.Duration
}

// Config says how a pool chooses. Settings, Breakers and Rand are required.
type Config struct {
	Settings
	// Breakers guard the upstreams against repeated failure. The pool alone uses them.
	Breakers *breaker.Set
	// Rand breaks ties and draws samples.
	Rand *rand.Rand
	// Cores is assumed of an upstream that does not tell; default 16.
	Cores int
	// Hold is how long an upstream that refused a job for load gets no other
	// while there is another to ask. Without it an upstream that refuses at once
	// would look idle and attract the rest. Default 1 s; negative is not at all.
	Hold time.Duration
	// Explain makes each Assignment carry its Cost.
	Explain bool
}

func (c *Config) validate() error {
	if c.Policy == nil || c.Detector == nil || c.Breakers == nil || c.Rand == nil {
		return errors.New("pool: Policy, Detector, Breakers and Rand are required")
	}
	if c.Hold == 0 {
		c.Hold = time.Second
	}
	if c.Cores == 0 {
		c.Cores = 16
	}
	if c.Interval <= 0 || c.Cores < 0 {
		return fmt.Errorf("pool: Interval %v and Cores %d must be positive", c.Interval, c.Cores)
	}
	return nil
}

// Pool is the upstreams and their live state.
type Pool struct {
	cfg     Config
	gate    func(address string) gate // the breaker of an upstream that joins
	members map[string]*member        // by address, including those that left with jobs open
	set     []*member                 // the current set, sorted by address
	busy    []*member                 // those of it that have jobs of this sidecar, sorted by address
	fetches *durations                // how long projects' data takes to fetch, where its size is not known
	sizes   *fetchModel               // the same, where it is
	answers *durations                // how long an answer takes to begin where it is cached

	restored map[string]LearnedUpstream // of upstreams that have not joined yet

	projects projectStates
	listings uint64 // counts changes of cache listings, and sets
	sets     uint64 // counts the sets

	number   uint64 // claims so far
	inFlight int
	draining bool     // every upstream in the set
	ask      []string // upstreams that should report at once
	heard    bool     // something, since jobs were last reconsidered

	told   comparison       // what all upstreams tell
	near   []*member        // of the last claim, used again by the next
	best   [near]placed     // likewise
	memory candidates       // the same
	costs  []selection.Cost // the same
}

// New returns an empty pool.
func New(cfg Config) (*Pool, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Pool{
		cfg:     cfg,
		gate:    func(address string) gate { return cfg.Breakers.Join(address) },
		members: make(map[string]*member),
		fetches: newDurations(fetchPrior),
		sizes:   newFetchModel(),
		answers: newDurations(answerPrior),

		projects: newProjectStates(learnedProjects),
	}, nil
}

// Set replaces the membership by a full set. What is known of upstreams that
// stay is kept; those that left finish their jobs. It returns the addresses
// that joined and that left.
func (p *Pool) Set(now time.Time, upstreams []Upstream) (joined, left []string) {
	first := len(p.members) == 0
	before := p.set
	for _, m := range before {
		m.inSet = false
	}
	p.set = make([]*member, 0, len(upstreams))
	for _, u := range upstreams {
		if u.Weight == 0 {
			u.Weight = 1
		}
		m, known := p.members[u.Address]
		if known && m.inSet {
			continue // named twice
		}
		if !known {
			m = newMember(u, p.gate(u.Address), &p.cfg)
			p.recall(m)
			p.members[u.Address] = m
		}
		switch {
		case known && slices.Contains(before, m):
			if !u.StartedAt.Equal(m.StartedAt) && !m.StartedAt.IsZero() {
				m.forget(&p.cfg) // it restarted in place
				m.entered, m.joined = now, now
			}
		default:
			joined = append(joined, u.Address)
			if known {
				m.forget(&p.cfg)
				m.gate = p.gate(u.Address) // the one it had may be forgotten too
			}
			m.entered = now
			if !first {
				m.joined = now
			}
		}
		m.Upstream, m.inSet = u, true
		if m.up = m.joined; u.StartedAt.After(m.up) {
			m.up = u.StartedAt
		}
		p.set = append(p.set, m)
	}
	p.countDraining()
	slices.SortFunc(p.set, byAddress)
	p.busy = slices.DeleteFunc(slices.Clone(p.set), func(m *member) bool { return m.load.inFlight == 0 })
	p.sets++
	p.listings++
	for _, m := range p.set {
		m.changed = p.listings
	}
	p.tellAnew()
	p.compare()
	for _, m := range before {
		if !m.inSet {
			left = append(left, m.Address)
			p.cfg.Breakers.Leave(now, m.Address)
			p.reap(m)
		}
	}
	return joined, left
}

func byAddress(a, b *member) int { return strings.Compare(a.Address, b.Address) }

// Drain keeps new jobs from an upstream by hand, or ends that. It reports whether the
// upstream is known. It ends too when the upstream leaves.
func (p *Pool) Drain(address string, on bool) bool {
	m, ok := p.members[address]
	if !ok || !m.inSet {
		return false
	}
	m.drained = on
	p.countDraining()
	return true
}

// countDraining notes whether every upstream drains.
func (p *Pool) countDraining() {
	p.draining = !slices.ContainsFunc(p.set, func(m *member) bool { return !m.drains() })
}

// reap forgets an upstream that left once its last job has ended.
func (p *Pool) reap(m *member) {
	if !m.inSet && m.load.inFlight == 0 {
		delete(p.members, m.Address)
	}
}

// SetSettings makes the pool pick by other settings from now on. What it knows
// of the upstreams' load and caches stays. Their detectors stay as well, with
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
	p.cfg.Settings = s
}

// SetBreakers makes the breakers judge by other settings from now on.
func (p *Pool) SetBreakers(s breaker.Settings) { p.cfg.Breakers.SetSettings(s) }

// AllTried reports whether there are upstreams, and a job has been to all that
// take new jobs: what drains is nothing to wait for, unless all drain.
func (p *Pool) AllTried(tried []string) bool {
	untried := func(m *member) bool {
		return (!m.drains() || p.draining) && !slices.Contains(tried, m.Address)
	}
	return len(p.set) > 0 && !slices.ContainsFunc(p.set, untried)
}

// fetchTime is how long it is expected to take to fetch the project's data, in seconds.
func (p *Pool) fetchTime(project uint64) float64 { return p.fetch(p.projects.find(project)) }

func (p *Pool) fetch(project *projectState) float64 {
	if bytes := project.size(); bytes > 0 {
		return p.sizes.expected(bytes)
	}
	return p.fetches.expected(project.fetches)
}

// InFlight is the number of open assignments.
func (p *Pool) InFlight() int { return p.inFlight }

// Open is the number of open assignments of one project.
func (p *Pool) Open(project uint64) int { return p.projects.find(project).open }

// Len is the number of upstreams in the set.
func (p *Pool) Len() int { return len(p.set) }
