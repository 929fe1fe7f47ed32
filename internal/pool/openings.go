package pool

import (
	"time"

	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/pkg/selection"
)

// Openings are the upstreams that admit jobs at one instant. With many waiting jobs, they avoid claims that would fail, because
// a claim considers every upstream. They are valid until a claim succeeds.
type Openings struct {
	members []*member
	levels  []overload.Level // of the members
	best    overload.Level   // the highest of these
	unsure  bool             // some upstreams are for heavy jobs, suspect or nearly half open: only a claim decides
	hour    uint64
}

// Openings considers every upstream, and changes nothing.
func (p *Pool) Openings(now time.Time) *Openings {
	o, count := &Openings{hour: uint64(now.Unix() / 3600), unsure: p.counted.mixed}, p.rules(now, p.set, false)
	for _, m := range p.set {
		if p.routingReason(now, m, nil, false) != Eligible {
			continue
		}
		switch m.reason(now, nil, count, p.cfg.Interval) {
		case Eligible, Shedding:
			level := overload.Level(1)
			if m.fresh(now, p.cfg.Interval) {
				level = m.load.level
			}
			o.members, o.levels, o.best = append(o.members, m), append(o.levels, level), max(o.best, level)
		case Suspect:
			o.unsure = true
		case Shut:
			o.unsure = o.unsure || m.breaker.ReadyEarly(now)
		}
	}
	return o
}

// None reports whether certainly no upstream admits any job.
func (o *Openings) None() bool { return len(o.members) == 0 && !o.unsure }

// Refuse reports whether a claim of the job would certainly fail.
func (o *Openings) Refuse(r Request, tried *Places) bool {
	rank := 0.0 // 0 if only a claim finds the project that places the job
	if r.Data == nil {
		rank = overload.Rank(selection.Job{Project: r.Project, Priority: r.Priority, Hour: o.hour})
	}
	admits := func(l overload.Level) bool { return l >= 1 || rank < float64(l) }
	if o.unsure || tried.Len() == 0 {
		return !o.unsure && !admits(o.best)
	}
	for i, m := range o.members {
		if admits(o.levels[i]) && !tried.Has(m.Address) {
			return false
		}
	}
	return true
}
