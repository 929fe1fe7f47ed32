package selection

import (
	"math"

	"example.org/pilotfish/internal/hash"
)

// Rendezvous returns an upstream's score for a project in rendezvous hashing (highest random weight): the project's
// first-ranked upstream has the largest score, the second-ranked one the second largest, and so on. Every sidecar
// computes the same order, without any communication. When an upstream leaves, only the projects that it was first for
// move, to the other upstreams in proportion to their weights. The score is above 0 for a weight above 0, otherwise
// below 0: such upstreams are ranked last.
//
// Source: Thaler and Ravishankar (1998); the weights after Schindelhauer and
// Schomaker (2005).
func Rendezvous(project, upstreamID uint64, weight float64) float64 {
	return weigh(rendezvousHash(project, upstreamID), weight)
}

// rendezvousHash returns the pseudo-random number of a project and an upstream. If all weights are equal, it sorts
// upstreams in the same order as the scores.
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
	project      uint64
	equalWeights bool // all weights are equal, so the hashes are compared without logarithms
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
	return order{project: project, equalWeights: even}
}

// score returns a view's score; views with larger scores come first. It returns 0 for most scores below floor, which
// saves their logarithms.
func (o order) score(v *View, floor float64) float64 {
	hash := rendezvousHash(o.project, v.ID)
	if o.equalWeights {
		return fraction(hash)
	}
	return weighAbove(floor, hash, v.Weight)
}

// weighAbove returns weigh if that exceeds floor; otherwise it can return 0.
func weighAbove(floor float64, hash uint64, weight float64) float64 {
	// -ln u >= 1-u, so weight/(1-u) bounds the score from above.
	if floor > 0 && weight < floor*(1-fraction(hash)) {
		return 0
	}
	return weigh(hash, weight)
}

// lastRank is the rank of all views from the sixth on. The first five views have the ranks 0 to 4.
const lastRank = 5

// ranking holds the first five views of an order. It can leave out the views that have the project cached.
type ranking struct {
	views [lastRank]int
	score [lastRank]float64
	n     int

	skipped bool // a view was left out because it has the project cached
}

// floor is the score that a view must exceed to be ranked.
func (r *ranking) floor() float64 {
	if r.n < lastRank {
		return -1
	}
	return r.score[lastRank-1]
}

// rankOf returns the rank of the view at index.
func (r *ranking) rankOf(index int) float64 {
	for rank, i := range r.views[:r.n] {
		if i == index {
			return float64(rank)
		}
	}
	return lastRank
}

// rank ranks all views, or with uncached only those that do not have the project cached.
func (r *ranking) rank(o order, views []View, uncached bool) {
	floor := r.floor()
	for i := range views {
		if uncached && views[i].Cache != NotCached {
			r.skipped = true
			continue
		}
		if score := o.score(&views[i], floor); score > floor {
			r.add(i, score)
			floor = r.floor()
		}
	}
}

// add inserts the view at index, whose score exceeds the floor.
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
