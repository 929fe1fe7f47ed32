package pool

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Set replaces the set of upstreams. Upstreams that stay keep their state; those that leave finish their jobs. It
// returns the addresses of the upstreams that joined and left.
func (p *Pool) Set(now time.Time, upstreams []Upstream) (joined, left []string) {
	joined, left = p.Replace(now, upstreams)
	for p.Forget(now) {
	}
	return joined, left
}

// Replace is Set without Prepare and Forget. Jobs wait for the lock during each call, so for a large set the caller
// calls Prepare, Replace and Forget in steps.
func (p *Pool) Replace(now time.Time, upstreams []Upstream) (joined, left []string) {
	before := p.set
	p.accepting.sets++
	p.set = make([]*member, 0, len(upstreams))
	for _, u := range upstreams {
		if u.Weight == 0 {
			u.Weight = 1
		}
		m := p.member(u)
		if m.named == p.accepting.sets {
			continue // a duplicate
		}
		joins := !m.inSet
		if joins {
			joined = append(joined, u.Address)
		}
		if joins || !u.StartedAt.Equal(m.StartedAt) && !m.StartedAt.IsZero() && !u.StartedAt.IsZero() { // or it restarted in place
			m.join(now, p.watch.Claims(), p.cfg.Detector())
		}
		m.Upstream, m.inSet, m.named = u, true, p.accepting.sets
		p.set = append(p.set, m)
	}
	p.accepting.changed(p.set)
	slices.SortFunc(p.set, byAddress)
	p.updateNorms()
	for _, m := range before {
		if m.named != p.accepting.sets {
			left = append(left, m.Address)
			m.leave(now)
			p.outside = append(p.outside, m)
		}
	}
	p.checked = 0
	return joined, left
}

// setAtOnce is the maximum number of upstreams that one call of Prepare or Forget considers.
const setAtOnce = 500

// Prepare creates members for some of the upstreams that are about to join, and returns the rest.
func (p *Pool) Prepare(upstreams []Upstream) (rest []Upstream) {
	n := min(len(upstreams), setAtOnce)
	for _, u := range upstreams[:n] {
		p.member(u)
	}
	return upstreams[n:]
}

// member returns an upstream, or a new one that is not in the set.
func (p *Pool) member(u Upstream) *member {
	m := p.members[u.Address]
	if m == nil {
		m = newMember(u, &p.breakers)
		p.members[u.Address] = m
		p.outside = append(p.outside, m)
	}
	return m
}

// maxOutside is the maximum number of upstreams that are kept for their breakers after they left.
const maxOutside = 1000

// Forget forgets some of the upstreams that are not in the set, if their state is no longer needed. It reports whether
// another call is needed to consider all. If more than maxOutside are left, the last call forgets those without jobs
// that left first.
func (p *Pool) Forget(now time.Time) (more bool) {
	to := min(p.checked+setAtOnce, len(p.outside))
	kept := slices.DeleteFunc(p.outside[p.checked:to], func(m *member) bool { return m.inSet || p.forgetIfGone(now, m) })
	p.checked += len(kept)
	p.outside = slices.Delete(p.outside, p.checked, to)
	if p.checked < len(p.outside) {
		return true
	}
	surplus := len(p.outside) - maxOutside
	p.outside = slices.DeleteFunc(p.outside, func(m *member) bool {
		if surplus <= 0 || m.load.inFlight > 0 {
			return false
		}
		surplus--
		p.forget(m)
		return true
	})
	p.checked = len(p.outside)
	return false
}

// Drain starts or ends an operator's drain of an upstream, which also ends when the upstream leaves the set. It reports
// whether the upstream is in the set.
func (p *Pool) Drain(address string, on bool) bool {
	m, ok := p.members[address]
	if !ok || !m.inSet {
		return false
	}
	m.drained = on
	p.accepting.forget()
	return true
}

// forgetIfGone forgets an upstream that left if its state is no longer needed, and reports whether it did.
func (p *Pool) forgetIfGone(now time.Time, m *member) bool {
	if !m.isGone(now, p.cfg.Breaker.OpenMax()) {
		return false
	}
	p.forget(m)
	return true
}

func (p *Pool) forget(m *member) {
	if p.members[m.Address] == m { // otherwise it is forgotten already
		delete(p.members, m.Address)
	}
}

// updateNorms computes the norms from all upstreams.
func (p *Pool) updateNorms() {
	cores, paces := make([]float64, 0, len(p.set)), make([]float64, 0, len(p.set))
	for _, m := range p.set {
		if n := cmp.Or(m.figures.cores, m.Cores); n > 0 {
			cores = append(cores, float64(n))
		}
		if pace := m.figures.rate.perCore(); pace > 0 {
			paces = append(paces, pace)
		}
	}
	p.norms.compare(cores, paces)
}

// countAccepting counts the upstreams that take new heavy or ordinary jobs.
func (p *Pool) countAccepting(now time.Time, heavy bool) acceptCount {
	return p.accepting.count(now, p.set, heavy)
}

// rules returns the rules for the upstreams of a set that take new heavy or ordinary jobs.
func (p *Pool) rules(now time.Time, set []*member, heavy bool) rules {
	var t takers
	for _, m := range set {
		if p.accepting.accepts(m, heavy) {
			t.add(m.leavingReason(now) != Eligible, m.suspicion.Why() != "", !m.breaker.Ready(now))
		}
	}
	return t.rules(p.countAccepting(now, heavy).allLeaving)
}

func byAddress(a, b *member) int { return strings.Compare(a.Address, b.Address) }
