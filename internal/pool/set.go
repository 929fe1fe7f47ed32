package pool

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Set replaces the set of upstreams. What is known of those that stay is kept; those that leave finish their jobs. It returns
// the addresses that joined and that left.
func (p *Pool) Set(now time.Time, upstreams []Upstream) (joined, left []string) {
	before := p.set
	p.counted.sets++
	p.set = make([]*member, 0, len(upstreams))
	for _, u := range upstreams {
		if u.Weight == 0 {
			u.Weight = 1
		}
		m := p.members[u.Address]
		if m == nil {
			m = newMember(u, &p.breakers)
			p.members[u.Address] = m
		} else if m.named == p.counted.sets {
			continue // a duplicate
		}
		joins := !m.inSet
		if joins {
			joined = append(joined, u.Address)
		}
		if joins || !u.StartedAt.Equal(m.StartedAt) && !m.StartedAt.IsZero() { // or it restarted in place
			m.joins(now, p.cfg.Detector())
		}
		m.Upstream, m.inSet, m.named = u, true, p.counted.sets
		p.set = append(p.set, m)
	}
	p.counted.changed(p.set)
	slices.SortFunc(p.set, byAddress)
	p.compare()
	for _, m := range before {
		if m.named != p.counted.sets {
			left = append(left, m.Address)
			m.leaves(now)
		}
	}
	for _, m := range p.members {
		p.forgetIfGone(now, m)
	}
	return joined, left
}

// Drain makes an upstream drain until it leaves, or ends that. It reports whether the upstream is in the set.
func (p *Pool) Drain(address string, on bool) bool {
	m, ok := p.members[address]
	if !ok || !m.inSet {
		return false
	}
	m.drained = on
	p.counted.forget()
	return true
}

// forgetIfGone forgets an upstream that left, once nothing of it is needed.
func (p *Pool) forgetIfGone(now time.Time, m *member) {
	if m.gone(now, p.cfg.Breaker.OpenMax()) {
		delete(p.members, m.Address)
	}
}

// compare computes the norms from all upstreams.
func (p *Pool) compare() {
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

// takers counts the upstreams that take new heavy or ordinary jobs.
func (p *Pool) takers(now time.Time, heavy bool) count { return p.counted.count(now, p.set, heavy) }

func byAddress(a, b *member) int { return strings.Compare(a.Address, b.Address) }
