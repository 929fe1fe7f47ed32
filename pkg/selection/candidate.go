package selection

import (
	"math"
	"math/rand/v2"
)

// nowhere is the index of a candidate before any view was seen.
const nowhere = -1

// candidate is a view and its cost.
type candidate struct {
	index int
	total float64
}

// nobody is the candidate before any view was seen, which every view undercuts.
func nobody() candidate { return candidate{nowhere, math.Inf(1)} }

// undercut reports whether a cost is below the candidate's.
func (c candidate) undercut(total float64) bool {
	return c.index == nowhere || total < c.total
}

// offer takes the view at index, if it is cheaper.
func (c *candidate) offer(index int, total float64) {
	if c.undercut(total) {
		*c = candidate{index, total}
	}
}

// pair keeps two of the candidates offered, every pair with the same probability.
type pair struct {
	a, b candidate
	seen int
}

// offer takes one more candidate into account.
func (p *pair) offer(c candidate, rng *rand.Rand) {
	p.seen++
	switch p.seen {
	case 1:
		p.a = c
	case 2:
		p.b = c
	default:
		switch rng.IntN(p.seen) {
		case 0:
			p.a = c
		case 1:
			p.b = c
		}
	}
}

// cheaper is the index of the cheaper of the two.
func (p *pair) cheaper(rng *rand.Rand) int {
	if p.seen > 1 && (p.b.total < p.a.total || p.b.total == p.a.total && rng.IntN(2) == 0) {
		return p.b.index
	}
	return p.a.index
}
