package pool

import (
	"cmp"
	"slices"
	"time"

	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/pkg/selection"
)

// Openings holds the upstreams that can take heavy or ordinary jobs at one instant. A claim considers every upstream,
// so if many jobs wait, Openings saves time by finding out which claims would fail.
type Openings struct {
	trusted   []opening // upstreams that are not suspect, sorted by falling level
	suspects  []*member // for jobs that have tried all trusted upstreams
	nearly    []*member // breakers open for longer than the first, undoubled open time: for jobs that no other upstream takes
	dedicated bool      // there are upstreams for heavy jobs, which are left out
	hour      uint64
	rules     rules
}

// opening is an upstream and the level of its overload detection.
type opening struct {
	*member
	level overload.Level
}

// admits reports whether the upstream's overload detection admits jobs of that rank.
func (o opening) admits(rank float64) bool { return o.level >= 1 || rank < float64(o.level) }

// Openings finds the upstreams that can take jobs. It changes nothing.
func (p *Pool) Openings(now time.Time, heavy bool) *Openings {
	o := &Openings{hour: uint64(now.Unix() / 3600), dedicated: p.accepting.mixed && !heavy, rules: p.rules(now, p.set, heavy)}
	for _, m := range p.set {
		if p.routingReason(now, m, nil, heavy) != Eligible {
			continue
		}
		switch m.reason(now, nil, o.rules, p.cfg.Interval) {
		case Suspect:
			o.suspects = append(o.suspects, m)
		case Shut:
			if m.breaker.ReadyEarly(now) {
				o.nearly = append(o.nearly, m)
			}
		default:
			level := overload.Level(1)
			if m.isFresh(now, p.cfg.Interval) {
				level = m.load.level
			}
			o.trusted = append(o.trusted, opening{m, level})
		}
	}
	slices.SortStableFunc(o.trusted, func(a, b opening) int { return cmp.Compare(b.level, a.level) })
	return o
}

// healthyOpenings are the openings at healthy upstreams, where waiting jobs can move. There are none while too many upstreams
// seem to be affected.
func (p *Pool) healthyOpenings(now time.Time, heavy bool) *Openings {
	o := p.Openings(now, heavy)
	o.trusted = slices.DeleteFunc(o.trusted, func(one opening) bool { return !o.rules.areUsual() || !one.isHealthy(now) })
	return o
}

// NoneAdmits reports whether certainly no upstream admits any job.
func (o *Openings) NoneAdmits() bool {
	return !o.dedicated && len(o.suspects) == 0 && len(o.nearly) == 0 && (len(o.trusted) == 0 || o.trusted[0].level <= 0)
}

// Refuses reports whether a claim of the job would certainly fail.
func (o *Openings) Refuses(r Request, tried *AddressSet) bool {
	rank := 0.0 // 0 if Data is set: only a claim finds out which part places the job
	if r.Data == nil {
		rank = o.rank(r.Project, r.Priority)
	}
	untried := func(m *member) bool { return !tried.Has(m.Address) }
	admitted, waits := o.trusts(rank, tried)
	if admitted || slices.ContainsFunc(o.nearly, untried) {
		return false
	}
	return waits || !slices.ContainsFunc(o.suspects, untried)
}

// rank returns the rank of jobs of a project and priority in overload detection. Upstreams refuse the jobs with the
// highest ranks first.
func (o *Openings) rank(project uint64, priority selection.Priority) float64 {
	return overload.Rank(selection.Job{Project: project, Priority: priority, Hour: o.hour})
}

// trusts reports whether a trusted upstream that is not in tried admits jobs of that rank. waits is set if none admits
// them but the job has not tried all trusted upstreams: then it waits for one.
func (o *Openings) trusts(rank float64, tried *AddressSet) (admitted, waits bool) {
	best := slices.IndexFunc(o.trusted, func(one opening) bool { return !tried.Has(one.Address) })
	if best < 0 {
		return false, false
	}
	return o.trusted[best].admits(rank), true
}

// ChangesOpenings reports whether the claim of the assignment can have changed the openings. It cannot if the upstream
// is healthy.
func (a *Assignment) ChangesOpenings(now time.Time) bool {
	return !a.member.isHealthy(now)
}
