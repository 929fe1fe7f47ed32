package pool

import (
	"cmp"
	"slices"

	"example.org/pilotfish/pkg/selection"
)

// nearby adds the upstreams near the project to a set, in its rendezvous order. It adds none if a claim must consider all.
func (p *Pool) nearby(set []*member, project *projectState) []*member {
	if project.id == 0 || len(p.set) < nearFrom {
		return set
	}
	if project.near == nil || project.nearOf != p.counted.sets {
		places := p.first(project.id)
		project.near, project.nearOf = &places, p.counted.sets
	}
	for _, place := range project.near {
		set = append(set, p.set[place])
	}
	return set
}

// among returns the upstreams with these addresses, sorted by address.
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

// placed is an upstream's place in the set, and its score for a project.
type placed struct {
	place uint16
	score float64
}

// first returns the indexes of the first upstreams in the project's rendezvous order. It keeps only those in order, which is
// much cheaper than sorting all.
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
