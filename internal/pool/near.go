package pool

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"example.org/pilotfish/pkg/selection"
)

const (
	// nearFrom is how many upstreams a pool must have before a claim looks at the near
	// ones alone, and near is how many are near: the first in the project's rendezvous
	// order. A project's data is hardly ever elsewhere, since upstreams further down
	// are taken only if all before them are dearer.
	nearFrom, near = 64, 32
	// manyFrom is how many upstreams a pool must have before a claim that finds no free core near by looks at many of
	// them, and not at all: more choice gains nothing, and takes time in which other jobs wait.
	manyFrom, many = 1024, 512
)

// nearby adds to a set the upstreams that are near the project, the first in its rendezvous order first. It adds none
// where a claim must look at all.
func (p *Pool) nearby(set []*member, project *projectState) []*member {
	if project.id == 0 || len(p.set) < nearFrom {
		return set
	}
	if project.near == nil || project.nearOf != p.sets {
		places := p.first(project.id)
		project.near, project.nearOf = &places, p.sets
	}
	for _, place := range project.near {
		set = append(set, p.set[place])
	}
	return set
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
		if m.breaker.Ready(now) && p.routingReason(now, m, tried, heavy) == Eligible && !slices.Contains(before, m) {
			set = append(set, m)
		}
	}
	return set
}

// placed is an upstream's place in the set, and its score for a project.
type placed struct {
	place uint16
	score float64
}

// first returns the places of the first members in the project's rendezvous order. It
// keeps those alone in order, which is far less work than to sort all.
func (p *Pool) first(project uint64) (places [near]uint16) {
	best := make([]placed, 0, near)
	for i, m := range p.set {
		one := placed{uint16(i), selection.Rendezvous(project, m.id, m.Weight)}
		if len(best) == near && one.score <= best[near-1].score {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, one, func(a, b placed) int { return cmp.Compare(b.score, a.score) })
		best = slices.Insert(best[:min(len(best), near-1)], at, one)
	}
	for i, one := range best {
		places[i] = one.place
	}
	return places
}
