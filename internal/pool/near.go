package pool

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"example.org/pilotfish/pkg/selection"
)

// nearby returns the members of the set that are near the project, the first in its
// rendezvous order first. It returns nil where a claim must look at all. What it returns is
// valid until the next call.
func (p *Pool) nearby(project *projectState) []*member {
	if project.id == 0 || len(p.set) < nearFrom {
		return nil
	}
	if project.near == nil || project.nearOf != p.sets {
		places := p.first(project.id)
		project.near, project.nearOf = &places, p.sets
	}
	p.near = p.near[:0]
	for _, place := range project.near {
		p.near = append(p.near, p.set[place])
	}
	return p.near
}

// among returns the upstreams of the set that have these addresses, in the order of the set.
func (p *Pool) among(addresses *Places) []*member {
	set := make([]*member, 0, addresses.Len())
	for _, address := range addresses.list {
		if m := p.members[address]; m != nil && m.inSet {
			set = append(set, m)
		}
	}
	slices.SortFunc(set, byAddress)
	return slices.Compact(set) // one may be named twice
}

// some adds to a set more upstreams, from a random one on, to which a job that has been to those in tried can go. They
// become as many as that, if there are so many.
func (p *Pool) some(now time.Time, set []*member, size int, tried *Places, heavy bool, rng *rand.Rand) []*member {
	before, from := set, rng.IntN(len(p.set))
	for i := 0; i < len(p.set) && len(set) < size; i++ {
		m := p.set[(from+i)%len(p.set)]
		if m.health.ready(now) && p.routingReason(now, m, tried, heavy) == Eligible && !slices.Contains(before, m) {
			set = append(set, m)
		}
	}
	p.near = set
	return set
}

// first returns the places of the first members in the project's rendezvous order. It
// keeps those alone in order, which is far less work than to sort all.
func (p *Pool) first(project uint64) (places [near]uint16) {
	best := p.best[:0]
	for i, m := range p.set {
		one := placed{uint16(i), selection.Rendezvous(project, m.id, m.Weight)}
		if len(best) == near && one.score <= best[near-1].score {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, one, func(a, b placed) int { return cmp.Compare(b.score, a.score) })
		best = slices.Insert(best[:min(len(best), near-1)], at, one)
	}
	p.best = best
	for i, one := range best {
		places[i] = one.place
	}
	return places
}
