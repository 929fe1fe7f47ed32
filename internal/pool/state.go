package pool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

// State is the state of one upstream, for the admin port, logs and metrics.
type State struct {
	Upstream
	// Eligible is set if the upstream can get any job. It is not set where only exceptions send jobs: panic mode, a
	// drain of all upstreams, and the job that tries an upstream that was down. Reason is why the upstream is not
	// eligible, and Why gives the reason with the evidence.
	Eligible bool   `json:"eligible"`
	Reason   Reason `json:"reason,omitzero"`
	Why      string `json:"why,omitempty"`
	// Suspect says why the upstream is suspect, if it is. If more than half of the upstreams are suspect, they stay
	// eligible.
	Suspect string `json:"suspect,omitempty"`
	// Status is the upstream's condition in words: eligible or why not, and any anomalies.
	Status string `json:"status"`
	// DownSince is when the upstream began to refuse connections; absent if it does not.
	DownSince time.Time `json:"down_since,omitzero"`
	// Drained is set while an operator drains it.
	Drained bool `json:"drained,omitempty"`
	// InFlight is the number of this sidecar's jobs there.
	InFlight int `json:"in_flight"`
	// Jobs is the estimated number of jobs at the upstream now. Running is the number of running jobs, and Stalled that
	// of stalled joblets, in the last report or load hint.
	Jobs    float64 `json:"jobs"`
	Running float64 `json:"running"`
	Stalled float64 `json:"stalled"`
	// Cores is the number of cores that the upstream reports, or else the one from discovery, if it is plausible; 0 is
	// unknown. CoresBusy is the number of busy ones; negative is unknown.
	Cores     int     `json:"cores"`
	CoresBusy float64 `json:"cores_busy"`
	// ReportAge is the age of the last report in seconds; negative if there was none. ReportFresh is set while the
	// report is recent and credible.
	ReportAge   float64 `json:"report_age_seconds"`
	ReportFresh bool    `json:"report_fresh"`
	// Level is the share of jobs that overload detection admits: 1 is all, 0 is none.
	Level float64 `json:"overload_level"`
	// Breaker is its circuit breaker.
	Breaker health.Status `json:"breaker"`
	// Cached is the number of projects in the last cache listing. Assumed is the number of further projects that are
	// assumed to be cached because one of their jobs was sent there.
	Cached  int `json:"cached_projects"`
	Assumed int `json:"assumed_projects"`
	// Rate is the number of jobs completed per second while every core is busy; 0 is unknown.
	Rate float64 `json:"rate"`
	// Wait is how long a new job would wait for a core, in seconds: the waiting jobs and itself, divided by the rate. It is
	// 0 while a core is free, and negative if it is unknown.
	Wait float64 `json:"wait_seconds"`
	// Implausible lists the reported figures that are not credible; they count as unknown.
	Implausible string `json:"implausible,omitempty"`
	// Slow is a message if the time to first byte is several times that of other upstreams, for the same projects and
	// without waits; otherwise absent.
	Slow string `json:"slow,omitempty"`
	// Latency is the time to first byte in seconds: a moving average that rises to a peak at once and falls with a
	// half-life of ten seconds.
	Latency float64 `json:"latency_seconds"`
}

// Anomalies of an upstream, as its status and the log name them.
const (
	IsDown        = "down"
	BreakerOpened = "breaker opened"
	IsSuspect     = "suspect"
	IsImplausible = "implausible figures"
	IsSlow        = "slow"
)

// Down says that the upstream is down, and since when.
func (s *State) Down() string {
	return health.ErrRefused.Error() + " since " + settings.Minute(s.DownSince)
}

// status returns the upstream's condition in words.
func (s *State) status() string {
	words := cmp.Or(s.Why, "eligible")
	for _, odd := range [...]struct{ what, why string }{{IsSuspect, s.Suspect}, {IsImplausible, s.Implausible}, {IsSlow, s.Slow}} {
		if odd.why != "" && s.DownSince.IsZero() && (odd.what != IsSuspect || s.Reason != Suspect) {
			words += "; " + odd.what + ": " + odd.why
		}
	}
	return words
}

// IsLeaving reports whether the upstream stops soon or drains.
func (s *State) IsLeaving() bool { return s.Draining || s.Drained || s.Reason == Stopping }

// InPanic reports whether breakers are ignored for heavy or for ordinary jobs.
func InPanic(states []State) bool { return allShut(states, true) || allShut(states, false) }

// allShut reports whether the breakers of all upstreams that take new heavy or ordinary jobs let no job through.
func allShut(states []State, heavy bool) bool {
	var t takers
	for i := range states {
		if s := &states[i]; heavy || !s.Heavy {
			t.add(s.IsLeaving(), s.Suspect != "", !s.Breaker.Until.IsZero())
		}
	}
	return !t.rules(t[0].n == 0).breakers
}

// States lists the upstreams in the set, by address.
func (p *Pool) States(now time.Time) []State {
	return p.ListStates(now).Next(now, make([]State, 0, len(p.set)))
}

// StateList lists the states of the upstreams in steps. The set can change between two steps.
type StateList struct {
	pool  *Pool
	rules rules
	last  string // address
}

// ListStates starts a list.
func (p *Pool) ListStates(now time.Time) *StateList {
	l := &StateList{pool: p, rules: p.rules(now, p.set, true)}
	l.rules.breakers = true
	return l
}

// Next fills step with the states of the next upstreams, and returns the part that it filled.
func (l *StateList) Next(now time.Time, step []State) []State {
	p := l.pool
	from, found := slices.BinarySearchFunc(p.set, l.last, func(m *member, address string) int { return strings.Compare(m.Address, address) })
	if found {
		from++
	}
	states := step[:0]
	for _, m := range p.set[from:min(from+cap(step), len(p.set))] {
		l.last = m.Address
		s := p.state(now, m)
		if s.Reason = m.leavingReason(now); s.Reason == Eligible {
			s.Reason = m.reason(now, nil, l.rules, p.cfg.Interval)
		}
		if s.Reason == Eligible && !s.DownSince.IsZero() {
			s.Reason = Shut // although a job may be sent to try it: it is down until it responds or reports
		}
		s.Eligible = s.Reason == Eligible
		s.Why = s.Reason.String()
		switch {
		case s.Reason == Shut && !s.DownSince.IsZero():
			s.Why = IsDown + ": " + s.Down()
		case s.Reason == Shut:
			s.Why = BreakerOpened + ": " + s.Breaker.Why
		case s.Reason == Stopping:
			s.Why = fmt.Sprintf("stops in %.0f s", max(0, m.StopsAt.Sub(now).Seconds()))
		case s.Reason == Suspect:
			s.Why = IsSuspect + ": " + s.Suspect
		}
		s.Status = s.status()
		states = append(states, s)
	}
	return states
}

// Holders returns, for each project, the sorted addresses of the upstreams that have its data, listed or assumed.
func (p *Pool) Holders(now time.Time, projects []uint64) map[uint64][]string {
	holders := make(map[uint64][]string, len(projects))
	for _, m := range p.set {
		listed := m.cached.listingFresh(now, p.cfg.Interval)
		for _, key := range projects {
			if m.cached.status(key, listed) != selection.NotCached {
				holders[key] = append(holders[key], m.Address)
			}
		}
	}
	return holders
}

// IsFull reports whether the upstreams that take jobs have at least as many jobs as cores, in total. Free cores of
// upstreams that get no jobs do not count.
func (p *Pool) IsFull(now time.Time) bool {
	room := 0.0
	for _, m := range p.set {
		if m.leavingReason(now) == Eligible && m.suspicion.Why() == "" && m.breaker.Ready(now) {
			fresh := m.isFresh(now, p.cfg.Interval)
			room += m.cores(&p.norms) - m.load.present(fresh) + m.load.blocked(fresh)
		}
	}
	return room <= 0
}

// state returns the state of m, without its eligibility.
func (p *Pool) state(now time.Time, m *member) State {
	fresh := m.isFresh(now, p.cfg.Interval)
	s := State{
		Upstream:    m.Upstream,
		Suspect:     m.suspicion.Why(),
		DownSince:   m.breaker.Down(),
		Drained:     m.drained,
		InFlight:    m.load.inFlight,
		Jobs:        m.load.present(fresh),
		Running:     m.load.running,
		Stalled:     m.load.stalled,
		Cores:       m.figures.plausibleCores(m.Cores, &p.norms),
		CoresBusy:   -1,
		ReportAge:   -1,
		ReportFresh: fresh,
		Level:       float64(m.load.level),
		Breaker:     m.breaker.Status(now),
		Cached:      m.cached.len(),
		Assumed:     m.cached.assumed.Len() + m.cached.prompts.Blocks(),
		Rate:        m.cores(&p.norms) * m.figures.pace(&p.norms),
		Implausible: m.figures.implausible(m.Cores, m.cached.tooLong, &p.norms),
		Slow:        m.slowness.describe(p.norms.slownesses),
		Latency:     m.latency.value,
	}
	s.Wait = wait(s.Jobs-m.load.blocked(fresh), m.cores(&p.norms), s.Rate)
	if !m.load.at.IsZero() {
		s.ReportAge, s.CoresBusy = now.Sub(m.load.at).Seconds(), m.figures.busy
	}
	return s
}

// wait returns how long one more job would wait for a core, in seconds; negative is unknown.
func wait(jobs, cores, rate float64) float64 {
	switch {
	case jobs < cores:
		return 0
	case rate <= 0:
		return -1
	}
	return (jobs - cores + 1) / rate
}
