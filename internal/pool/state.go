package pool

import (
	"cmp"
	"slices"
	"time"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/pkg/selection"
)

// State is all that the pool knows of one upstream, for people and metrics.
type State struct {
	Upstream
	// Eligible ignores panic mode and a drain of all upstreams, in which jobs may
	// still go there. Why says what keeps the upstream from being eligible.
	Eligible bool   `json:"eligible"`
	Why      string `json:"why,omitempty"`
	// Suspect says why the upstream is suspect, if it is. That is ignored, and the
	// upstream stays eligible, while more than half of the upstreams are suspect.
	Suspect string `json:"suspect,omitempty"`
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
	Level   float64        `json:"overload_level"`
	Breaker breaker.Status `json:"breaker"`
	// Cached is how many projects the last cache listing names, and Assumed how many
	// more are taken to be there because a job of theirs was sent there.
	Cached  int `json:"cached_projects"`
	Assumed int `json:"assumed_projects"`
	// Rate is jobs completed per second when every core is busy; 0 is unknown.
	Rate float64 `json:"rate"`
	// Wait is how long a job that came now would wait for a core, in seconds: the jobs
	// there that find none, and itself, over Rate. It is 0 while a core is free, and
	// negative where it is unknown.
	Wait float64 `json:"wait_seconds"`
	// Implausible is which of the upstream's figures cannot be true, and count as unknown.
	Implausible string `json:"implausible,omitempty"`
	// Latency is how long responses take to begin there: a peak counts at once, and is
	// forgotten by half in ten seconds.
	Latency float64 `json:"latency_seconds"`
}

// States lists the upstreams in the set, by address.
func (p *Pool) States(now time.Time) []State {
	states := make([]State, 0, len(p.set))
	ignored := p.suspicionIgnored()
	for _, m := range p.set {
		s := State{
			Suspect:     m.suspicion.why,
			Cores:       m.believed.cores,
			Implausible: m.wrong(),
			Drained:     m.drained,
			CoresBusy:   -1,
			Upstream:    m.Upstream,
			InFlight:    m.load.inFlight,
			Running:     m.load.running,
			Stalled:     m.load.stalled,
			ReportAge:   -1,
			Level:       float64(m.level),
			Breaker:     m.gate.Status(),
			Assumed:     m.assumed.len(),
			Rate:        m.cores(&p.cfg) * m.believed.pace,
			Latency:     m.latency.value,
		}
		fresh := m.fresh(now, &p.cfg)
		s.Jobs, s.ReportFresh = m.load.present(fresh), fresh
		s.Wait = wait(s.Jobs, m.cores(&p.cfg), s.Rate)
		if m.load.reported {
			s.ReportAge, s.CoresBusy = now.Sub(m.load.at).Seconds(), m.coresBusy
		}
		if m.cached != nil {
			s.Cached = m.cached.Len()
		}
		switch {
		case m.drained:
			s.Why = "drained by hand"
		case m.Draining:
			s.Why = "draining"
		case !m.gate.Ready(now):
			s.Why = "breaker open"
		case m.shunned(now) && !ignored:
			s.Why = "suspect"
		case now.Before(m.held):
			s.Why = "refused for load"
		case fresh && m.level <= 0:
			s.Why = "overloaded"
		}
		s.Eligible = s.Why == ""
		states = append(states, s)
	}
	return states
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

// CachedAt lists the upstreams that have a project's data by their last listing, and
// those that are taken to have it because a job of it went there.
func (p *Pool) CachedAt(now time.Time, project uint64) (cached, assumed []string) {
	cached, assumed = []string{}, []string{}
	for _, m := range p.set {
		switch m.cache(project, now, &p.cfg) {
		case selection.Cached:
			cached = append(cached, m.Address)
		case selection.AssumedCached:
			assumed = append(assumed, m.Address)
		}
	}
	return cached, assumed
}

// Ranked is one upstream as a policy would see it for a job.
type Ranked struct {
	// Address is host:port.
	Address string `json:"address"`
	// Picked is set for the one that the policy picks.
	Picked bool `json:"picked"`
	// Cache says whether the project's data is there: none, assumed or cached.
	Cache string `json:"cache"`
	// Jobs is the estimate of the jobs that are there now.
	Jobs float64 `json:"jobs"`
	// Cost is what spoke for and against it; absent where the policy weighs no costs.
	Cost *selection.Cost `json:"cost,omitempty"`
}

// Explain ranks the eligible upstreams for a job without claiming one, the
// one that would be picked first.
func (p *Pool) Explain(now time.Time, r Request) ([]Ranked, error) {
	project := p.projects.find(r.Project)
	job := p.job(now, r.Priority, project)
	c, err := p.eligible(now, &job, project, r.Among, nil)
	if err != nil {
		return nil, err
	}
	pick := p.cfg.Policy.Pick(job, c.views, p.cfg.Rand)
	costs := make([]selection.Cost, len(c.views))
	coster, priced := p.cfg.Policy.(selection.Coster)
	if priced {
		coster.Costs(job, c.views, costs)
	}
	ranked := make([]Ranked, len(c.views))
	for i, v := range c.views {
		ranked[i] = Ranked{Address: c.members[i].Address, Picked: i == pick, Cache: v.Cache.String(), Jobs: v.Jobs}
		if priced {
			ranked[i].Cost = &costs[i]
		}
	}
	sortRanked(ranked)
	return ranked, nil
}

// sortRanked puts the pick first and the rest by cost, or by jobs where the
// policy names no cost.
func sortRanked(ranked []Ranked) {
	slices.SortStableFunc(ranked, func(a, b Ranked) int {
		switch {
		case a.Picked:
			return -1
		case b.Picked:
			return 1
		case a.Cost != nil:
			return cmp.Compare(a.Cost.Total, b.Cost.Total)
		}
		return cmp.Compare(a.Jobs, b.Jobs)
	})
}
