package pool

import (
	"cmp"
	"fmt"
	"time"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/pkg/selection"
)

// State is all that the pool knows of one upstream, for people and metrics.
type State struct {
	Upstream
	// Eligible ignores panic mode and a drain of all upstreams, in which jobs may still go there, and the one
	// job that tries an upstream that was down. Reason is what keeps the upstream from being eligible, and Why
	// says it with the evidence.
	Eligible bool   `json:"eligible"`
	Reason   Reason `json:"reason,omitzero"`
	Why      string `json:"why,omitempty"`
	// Suspect says why the upstream is suspect, if it is. That is ignored, and the
	// upstream stays eligible, while more than half of the upstreams are suspect.
	Suspect string `json:"suspect,omitempty"`
	// Status is the upstream's condition in words: eligible, or what speaks against it, and what is odd about it.
	Status string `json:"status"`
	// DownSince is since when the upstream refuses connections, if it does.
	DownSince time.Time `json:"down_since,omitzero"`
	// Drained is set while an operator keeps new jobs away.
	Drained bool `json:"drained,omitempty"`
	// InFlight is the jobs that this sidecar sent there and that have not ended.
	InFlight int `json:"in_flight"`
	// Jobs is the estimate now. Running is the jobs, and Stalled the joblets, that the
	// last report or load hint counts.
	Jobs    float64 `json:"jobs"`
	Running float64 `json:"running"`
	Stalled float64 `json:"stalled"`
	// Cores is what the upstream reports, or else what discovery says, if that is
	// plausible; 0 is unknown.
	// CoresBusy is how many of them run a joblet; negative is unknown.
	Cores     int     `json:"cores"`
	CoresBusy float64 `json:"cores_busy"`
	// ReportAge is in seconds; negative when there was no report. ReportFresh is
	// set while the report is recent enough to choose by.
	ReportAge   float64 `json:"report_age_seconds"`
	ReportFresh bool    `json:"report_fresh"`
	// Level says which jobs the upstream may take for its load: 1 is all, 0 is none.
	Level float64 `json:"overload_level"`
	// Breaker is its circuit breaker.
	Breaker health.Status `json:"breaker"`
	// Cached is how many projects the last cache listing names, and Assumed how many
	// more are taken to be there because a job of theirs was sent there.
	Cached  int `json:"cached_projects"`
	Assumed int `json:"assumed_projects"`
	// Rate is jobs completed per second when every core is busy; 0 is unknown.
	Rate float64 `json:"rate"`
	// Wait is how long a job that came now would wait for a core, in seconds: the jobs
	// there that find none, and itself, over the rate. It is 0 while a core is free, and
	// negative where it is unknown.
	Wait float64 `json:"wait_seconds"`
	// Implausible is which of the upstream's figures cannot be true, and count as unknown.
	Implausible string `json:"implausible,omitempty"`
	// Slow says that responses take several times as long to begin there as elsewhere, for the same
	// projects and without waits, if they do.
	Slow string `json:"slow,omitempty"`
	// Latency is how long responses take to begin there: a peak counts at once, and is
	// forgotten by half in ten seconds.
	Latency float64 `json:"latency_seconds"`
}

// What can be wrong with an upstream or odd about it, in the words of its status and of the log.
const (
	IsDown        = "down"
	BreakerOpened = "breaker opened"
	IsSuspect     = "suspect"
	IsImplausible = "implausible figures"
	IsSlow        = "slow"
)

// Down says why the upstream is down, and since when.
func (s *State) Down() string {
	return health.ErrRefused.Error() + " since " + s.DownSince.Format("15:04")
}

// status is the condition in words.
func (s *State) status() string {
	words := cmp.Or(s.Why, "eligible")
	for _, odd := range [...]struct{ what, why string }{{IsSuspect, s.Suspect}, {IsImplausible, s.Implausible}, {IsSlow, s.Slow}} {
		if odd.why != "" && s.DownSince.IsZero() && (odd.what != IsSuspect || s.Reason != Suspect) {
			words += "; " + odd.what + ": " + odd.why
		}
	}
	return words
}

// Leaves reports whether it gets no new jobs, whatever its health: it stops soon, or it drains.
func (s *State) Leaves() bool { return s.Draining || s.Drained || s.Reason == Stopping }

// States lists the upstreams in the set, by address.
func (p *Pool) States(now time.Time) []State {
	states := make([]State, 0, len(p.set))
	count := p.rules(now, p.set, true)
	count.breakers = true
	for _, m := range p.set {
		s := p.state(now, m)
		if s.Reason = m.leaving(now); s.Reason == Eligible {
			s.Reason = m.reason(now, nil, count, p.cfg.Interval)
		}
		if s.Reason == Eligible && !s.DownSince.IsZero() {
			s.Reason = Shut // a job may try it, but it is down until it is reached
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

// Holders returns the addresses of the upstreams that have the data of each project, listed or assumed, by address.
func (p *Pool) Holders(now time.Time, projects []uint64) map[uint64][]string {
	holders := make(map[uint64][]string, len(projects))
	for _, m := range p.set {
		listed := m.cached.counts(now, p.cfg.Interval)
		for _, key := range projects {
			if m.cached.has(key, listed) != selection.NotCached {
				holders[key] = append(holders[key], m.Address)
			}
		}
	}
	return holders
}

// Panic reports whether breakers are ignored, because those of all upstreams that take new jobs
// are open.
func Panic(states []State) bool {
	shut := false
	for i := range states {
		switch states[i].Reason {
		case Stopping, Drains, Drained:
		case Shut:
			shut = true
		default:
			return false
		}
	}
	return shut
}

// Full reports whether the upstreams that take jobs have no more cores, together, than jobs. One
// core that stays free, where no job would go, leaves them full.
func (p *Pool) Full(now time.Time) bool {
	room := 0.0
	for _, m := range p.set {
		if m.leaving(now) == Eligible && m.suspicion.Why() == "" && m.breaker.Ready(now) {
			fresh := m.fresh(now, p.cfg.Interval)
			room += m.cores(&p.norms) - m.load.present(fresh) + m.load.blocked(fresh)
		}
	}
	return room <= 0
}

// state is what is known of m, but for whether it is eligible.
func (p *Pool) state(now time.Time, m *member) State {
	fresh := m.fresh(now, p.cfg.Interval)
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
		Implausible: m.figures.wrong(m.Cores, m.cached.tooLong, &p.norms),
		Slow:        m.slowness.describe(p.norms.slownesses),
		Latency:     m.latency.value,
	}
	s.Wait = wait(s.Jobs-m.load.blocked(fresh), m.cores(&p.norms), s.Rate)
	if !m.load.at.IsZero() {
		s.ReportAge, s.CoresBusy = now.Sub(m.load.at).Seconds(), m.figures.busy
	}
	return s
}

// wait is how long one more job would wait for a core, in seconds.
func wait(jobs, cores, rate float64) float64 {
	switch {
	case jobs < cores:
		return 0
	case rate <= 0:
		return -1
	}
	return (jobs - cores + 1) / rate
}
