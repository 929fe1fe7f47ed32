package selection

import (
	"math"

	"example.org/pilotfish/internal/hash"
)

// Rendezvous scores an upstream for a project by highest random weight: the
// project's first-ranked upstream has the largest score, the second-ranked
// one the second largest, and so on. Every sidecar computes the same order,
// without any communication. When an upstream leaves, only its own projects
// move, to all others in proportion to their weights. The score is above 0.
// Only for a weight of 0 or less it is below 0: such upstreams come last,
// in an order of their own.
//
// Source: Thaler and Ravishankar (1998); the weights after Schindelhauer and
// Schomaker (2005).
func Rendezvous(project, upstreamID uint64, weight float64) float64 {
	return weigh(rendezvousHash(project, upstreamID), weight)
}

// rendezvousHash is the random number of a project and an upstream. If all weights
// are equal, its order is that of the scores.
func rendezvousHash(project, upstreamID uint64) uint64 {
	return hash.Pair(project, upstreamID)
}

// weigh turns a uniform hash into a score.
func weigh(hash uint64, weight float64) float64 {
	if !(weight > 0) {
		return fraction(hash) - 1
	}
	return -weight / math.Log(fraction(hash))
}

// fraction maps a hash to (0, 1): neither 0 nor 1, so that no logarithm is 0 or
// infinite.
func fraction(hash uint64) float64 {
	return (float64(hash>>12) + 0.5) / (1 << 52)
}

// order compares upstreams by their rendezvous score for one project.
type order struct {
	project uint64
	even    bool // all weights are equal: then no logarithm is needed
}

// newOrder prepares the project's order over views.
func newOrder(project uint64, views []View) order {
	even := true
	for i := range views {
		if views[i].Weight != views[0].Weight {
			even = false
			break
		}
	}
	return order{project: project, even: even}
}

// score is a view's place in the order; a larger score is earlier. A score below
// floor may be returned as 0, which saves most logarithms.
func (o order) score(v *View, floor float64) float64 {
	hash := rendezvousHash(o.project, v.ID)
	if o.even {
		return fraction(hash)
	}
	return weighAbove(floor, hash, v.Weight)
}

// weighAbove is weigh if the result exceeds floor. Otherwise it may be 0.
func weighAbove(floor float64, hash uint64, weight float64) float64 {
	// -ln u >= 1-u, so weight/(1-u) bounds the score from above.
	if floor > 0 && weight < floor*(1-fraction(hash)) {
		return 0
	}
	return weigh(hash, weight)
}

// lastRank is how many views of an order are ranked, and the rank of all others.
const lastRank = 5

// ranking is the first few views in an order. It does not know the rest.
type ranking struct {
	views [lastRank]int
	score [lastRank]float64
	n     int
}

// floor is the score that a view must exceed to be ranked.
func (r *ranking) floor() float64 {
	if r.n < lastRank {
		return -1
	}
	return r.score[lastRank-1]
}

// rankOf is the rank of the view at index.
func (r *ranking) rankOf(index int) float64 {
	for rank, i := range r.views[:r.n] {
		if i == index {
			return float64(rank)
		}
	}
	return lastRank
}

// rank adds all views.
func (r *ranking) rank(o order, views []View) {
	floor := r.floor()
	for i := range views {
		if score := o.score(&views[i], floor); score > floor {
			r.add(i, score)
			floor = r.floor()
		}
	}
}

// add ranks the view at index, whose score exceeds the floor.
func (r *ranking) add(index int, score float64) {
	if r.n < lastRank {
		r.n++
	}
	at := r.n - 1
	for ; at > 0 && r.score[at-1] < score; at-- {
		r.views[at], r.score[at] = r.views[at-1], r.score[at-1]
	}
	r.views[at], r.score[at] = index, score
}
