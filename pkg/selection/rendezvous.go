package selection

import (
	"math"

	"example.org/pilotfish/internal/hash"
)

// Rendezvous scores an upstream for a project by highest random weight: the
// project's home is the upstream with the largest score, its second home has
// the second largest, and so on. Every sidecar finds the same order without
// talking to another; when an upstream goes, only its own projects move, to
// all others in proportion to their weights. The score is above 0, but below
// 0 for a weight of 0 or less: behind every other, in an order all the same.
//
// Source: Thaler and Ravishankar (1998); the weights after Schindelhauer and
// Schomaker (2005).
func Rendezvous(project, upstreamID uint64, weight float64) float64 {
	return weigh(rendezvousHash(project, upstreamID), weight)
}

// rendezvousHash is the random number that project and upstream meet on.
// Where weights are equal its order is that of the scores.
func rendezvousHash(project, upstreamID uint64) uint64 {
	return hash.Pair(project, upstreamID)
}

// weigh turns a uniform hash into a score. 52 bits and a half keep the
// fraction strictly between 0 and 1, so that the logarithm is never 0.
func weigh(hash uint64, weight float64) float64 {
	if !(weight > 0) {
		return fraction(hash) - 1
	}
	return -weight / math.Log(fraction(hash))
}

// fraction maps a hash to (0, 1).
func fraction(hash uint64) float64 {
	return (float64(hash>>12) + 0.5) / (1 << 52)
}

// order compares upstreams by their rendezvous score for one project.
type order struct {
	project uint64
	// even says that all weights are equal: then hashes are compared and no
	// logarithm is taken.
	even bool
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

// score is a view's place in the order, more is earlier; any score below
// floor may come back as 0, which spares most logarithms.
func (o order) score(v *View, floor float64) float64 {
	hash := rendezvousHash(o.project, v.ID)
	if o.even {
		return fraction(hash)
	}
	return weighAbove(floor, hash, v.Weight)
}

// weighAbove is weigh where the result exceeds floor, else maybe 0.
func weighAbove(floor float64, hash uint64, weight float64) float64 {
	// -ln u >= 1-u, so that weight/(1-u) bounds the score from above.
	if floor > 0 && weight < floor*(1-fraction(hash)) {
		return 0
	}
	return weigh(hash, weight)
}

// lastRank is the rank of every view behind the first few in an order: how
// many are ranked.
const lastRank = 5

// ranking keeps the first few views in an order; the rest of it is not known.
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

// add ranks the view at index, if its score is high enough.
func (r *ranking) add(index int, score float64) {
	if score <= r.floor() {
		return
	}
	if r.n < lastRank {
		r.n++
	}
	at := r.n - 1
	for ; at > 0 && r.score[at-1] < score; at-- {
		r.views[at], r.score[at] = r.views[at-1], r.score[at-1]
	}
	r.views[at], r.score[at] = index, score
}
