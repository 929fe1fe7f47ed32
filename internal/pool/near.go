package pool

import (
	"cmp"
	"slices"

	"example.org/pilotfish/pkg/selection"
)

const (
	// nearFrom is how many upstreams a pool must have before a claim looks at the near
	// ones alone, and near is how many are near: the first in the project's rendezvous
	// order. A project's data is hardly ever elsewhere, since upstreams further down
	// are taken only if all before them are dearer.
	nearFrom, near = 64, 32
	// nearProjects bounds the projects whose near upstreams are remembered: 1 MB.
	nearProjects = 1 << 14
)

// neighbourhood remembers which upstreams of the set are near each project, so that a
// claim need not go through all. It is made anew with the set.
type neighbourhood struct {
	places  *generations[[near]uint16] // in the set
	scores  []placed
	members []*member // of the last call, used again by the next
}

// placed is an upstream's place in the set, and its score for a project.
type placed struct {
	place uint16
	score float64
}

// maxNear is the size of the largest set whose places fit into 16 bits.
const maxNear = 1 << 16

func newNeighbourhood() neighbourhood {
	return neighbourhood{places: newGenerations[[near]uint16](nearProjects)}
}

// of returns the members of set that are near the project, the first in its rendezvous
// order first. It returns nil where a claim must look at all. What it returns is valid
// until the next call.
func (n *neighbourhood) of(project uint64, set []*member) []*member {
	if project == 0 || len(set) < nearFrom || len(set) > maxNear {
		return nil
	}
	places, ok := n.places.get(project)
	if !ok {
		n.scores = n.scores[:0]
		for i, m := range set {
			n.scores = append(n.scores, placed{uint16(i), selection.Rendezvous(project, m.id, m.Weight)})
		}
		slices.SortFunc(n.scores, func(a, b placed) int { return cmp.Compare(b.score, a.score) })
		for i := range places {
			places[i] = n.scores[i].place
		}
		n.places.put(project, places)
	}
	n.members = n.members[:0]
	for _, place := range places {
		n.members = append(n.members, set[place])
	}
	return n.members
}

// suffices reports whether the near upstreams will do for a claim: no rule is waived
// for them, and one of them has a core free for a low job.
func (c *candidates) suffices(w waive) bool {
	return w == (waive{}) && slices.ContainsFunc(c.views, func(v selection.View) bool { return v.Jobs < v.Cores })
}
