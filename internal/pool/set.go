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
	p.counted = [2]takers{}
	heavy := func(m *member) bool { return m.Heavy }
	p.mixed = slices.ContainsFunc(p.set, heavy) && slices.ContainsFunc(p.set, func(m *member) bool { return !m.Heavy })
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
	p.counted = [2]takers{}
	return true
}

// takers is how many upstreams take new jobs.
type takers struct {
	n     int
	all   bool      // all leave: then each takes jobs
	known bool      // until then
	until time.Time // when the next one is about to stop; zero is never
}

// takers counts the upstreams that take new jobs, heavy or ordinary ones, again only after a change.
func (p *Pool) takers(now time.Time, heavy bool) takers {
	t := &p.counted[0]
	if heavy {
		t = &p.counted[1]
	}
	if t.known && (t.until.IsZero() || now.Before(t.until)) {
		return *t
	}
	*t = takers{known: true}
	serving := 0
	for _, m := range p.set {
		if !p.serves(m, heavy) {
			continue
		}
		serving++
		if m.leaves(now) != Eligible {
			continue
		}
		t.n++
		if at := m.StopsAt.Add(-StopNotice); !m.StopsAt.IsZero() && (t.until.IsZero() || at.Before(t.until)) {
			t.until = at
		}
	}
	if t.all = t.n == 0; t.all {
		t.n = serving
	}
	return *t
}

func byAddress(a, b *member) int { return strings.Compare(a.Address, b.Address) }
