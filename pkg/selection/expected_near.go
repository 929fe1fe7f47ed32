package selection

import "math/rand/v2"

// nearEqual chooses among the warm views that cost about as little as the
// best: of two random ones the cheaper. A project that deserves few homes
// only looks at the first few in its rendezvous order.
func (s *survey) nearEqual(best candidate, views []View, rng *rand.Rand) int {
	if s.homes == 1 {
		return best.index
	}
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
		total := s.price(v, lastRank).total()
		switch {
		case !(total <= limit):
		case homes == 0:
			two.offer(candidate{i, total}, rng)
		default:
			first.add(i, s.by.score(v, first.floor()))
		}
	}
	for _, i := range first.views[:first.n] {
		two.offer(candidate{i, s.price(&views[i], lastRank).total()}, rng)
	}
	if two.seen == 0 {
		return best.index // only where costs are not finite
	}
	return two.cheaper(rng)
}
