package pool

import (
	"slices"
	"strings"
	"time"
)

// Set replaces the membership by a full set. What is known of upstreams that
// stay is kept; those that left finish their jobs. It returns the addresses
// that joined and that left.
func (p *Pool) Set(now time.Time, upstreams []Upstream) (joined, left []string) {
	before := p.set
	p.sets++
	p.set = make([]*member, 0, len(upstreams))
	for _, u := range upstreams {
		if u.Weight == 0 {
			u.Weight = 1
		}
		m := p.members[u.Address]
		if m == nil {
			m = newMember(u, &p.cfg)
			p.members[u.Address] = m
		} else if m.named == p.sets {
			continue // named twice
		}
		joins := !m.inSet
		if joins {
			joined = append(joined, u.Address)
		}
		if joins || !u.StartedAt.Equal(m.StartedAt) && !m.StartedAt.IsZero() { // or it restarted in place
			m.forget(&p.cfg)
			m.since = now
		}
		m.Upstream, m.inSet, m.named = u, true, p.sets
		p.set = append(p.set, m)
	}
	p.countTakers()
	slices.SortFunc(p.set, byAddress)
	p.compare()
	for _, m := range before {
		if m.named != p.sets {
			left = append(left, m.Address)
			m.inSet, m.since = false, now
		}
	}
	for _, m := range p.members {
		p.forgetIfGone(now, m)
	}
	return joined, left
}

// Drain keeps new jobs from an upstream by hand, or ends that. It reports whether the
// upstream is known. It ends too when the upstream leaves.
func (p *Pool) Drain(address string, on bool) bool {
	m, ok := p.members[address]
	if !ok || !m.inSet {
		return false
	}
	m.drained = on
	p.countTakers()
	return true
}

// countTakers notes how many upstreams take new jobs.
func (p *Pool) countTakers() {
	p.takers = 0
	for _, m := range p.set {
		if m.leaves() == Eligible {
			p.takers++
		}
	}
	if p.draining = p.takers == 0; p.draining {
		p.takers = len(p.set)
	}
}

func byAddress(a, b *member) int { return strings.Compare(a.Address, b.Address) }
