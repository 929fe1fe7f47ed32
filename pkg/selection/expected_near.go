package selection

import "math/rand/v2"

// nearEqual chooses among the warm views that cost about as little as the
// best: of two random ones the cheaper. A project that deserves few homes
// only looks at the first few in its rendezvous order.
func (s *survey) nearEqual(best candidate, views []View, rng *rand.Rand) int {
	limit := best.total + s.band(&views[best.index])
	homes := s.job.Homes
	if s.c.Off&PartHomes != 0 || s.job.Project == 0 || homes > maxRanked {
		homes = 0
	}
	var two pair
	first := ranking{limit: max(homes, 1)}
	for i := range views {
		v := &views[i]
		if !s.warm(v) {
			continue
		}
		total := s.cost(v, lastRank).Total
		switch {
		case !(total <= limit):
		case homes == 0:
			two.offer(candidate{i, total}, rng)
		default:
			first.add(i, s.by.score(v, first.floor()))
		}
	}
	for _, i := range first.views[:first.n] {
		two.offer(candidate{i, s.cost(&views[i], lastRank).Total}, rng)
	}
	if two.seen == 0 {
		return best.index // only where costs are not finite
	}
	return two.cheaper(rng)
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
