package pool

import (
	"cmp"
	"slices"

	"example.org/pilotfish/pkg/selection"
)

// shortlist adds the first upstreams in the project's rendezvous order to a set; none without a project, or in a small
// pool.
func (p *Pool) shortlist(set []*member, project *projectState) []*member {
	if project.id == 0 || len(p.set) < shortlistFrom {
		return set
	}
	if project.shortlist == nil || project.shortlistSet != p.accepting.sets {
		places := p.firstRanked(project.id)
		project.shortlist, project.shortlistSet = &places, p.accepting.sets
	}
	for _, place := range project.shortlist {
		set = append(set, p.set[place])
	}
	return set
}

// membersAt returns the upstreams with these addresses, sorted by address.
func (p *Pool) membersAt(addresses *AddressSet) []*member {
	set := make([]*member, 0, addresses.Len())
	for _, address := range addresses.list {
		if m := p.members[address]; m != nil && m.inSet {
			set = append(set, m)
		}
	}
	slices.SortFunc(set, byAddress)
	return slices.Compact(set) // one may be named twice
}

// scored is an upstream's index in the set, and its score for a project.
type scored struct {
	place uint16
	score float64
}

// firstRanked returns the indexes of the first upstreams in the project's rendezvous order. It keeps only these in
// order, which is much faster than sorting all upstreams.
func (p *Pool) firstRanked(project uint64) (places [shortlistSize]uint16) {
	best := make([]scored, 0, shortlistSize)
	for i, m := range p.set {
		one := scored{uint16(i), selection.Rendezvous(project, m.id, m.Weight)}
		if len(best) == shortlistSize && one.score <= best[shortlistSize-1].score {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, one, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
		best = slices.Insert(best[:min(len(best), shortlistSize-1)], at, one)
	}
	for i, one := range best {
		places[i] = one.place
	}
	return places
}
