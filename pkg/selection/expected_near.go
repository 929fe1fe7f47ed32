package selection

import "math/rand/v2"

// nearEqual chooses among the warm views that cost about as little as the
// best. Of those, a project that deserves few homes only uses the first few in
// its rendezvous order. What reports of their age cannot tell, this sidecar's own jobs
// there do, of which it knows exactly; and of two random ones of the views
// with the fewest the cheaper is taken.
func (s *survey) nearEqual(best candidate, views []View, rng *rand.Rand) int {
	if s.homes == 1 {
		return best.index
	}
	limit := best.total + s.band(&views[best.index])
	deserved := s.job.Homes
	if s.c.Off&PartHomes != 0 || s.job.Project == 0 || deserved > maxRanked {
		deserved = 0 // no bound
	}
	var near leastOwn
	first := ranking{limit: max(deserved, 1)}
	for i := range views {
		v := &views[i]
		if !s.warm(v) {
			continue
		}
		total := s.price(v, lastRank).total()
		switch {
		case !(total <= limit):
		case deserved == 0:
			near.offer(candidate{i, total}, ownLoad(v), rng)
		default:
			first.add(i, s.by.score(v, first.floor()))
		}
	}
	for _, i := range first.views[:first.n] {
		near.offer(candidate{i, s.price(&views[i], lastRank).total()}, ownLoad(&views[i]), rng)
	}
	if near.two.seen == 0 {
		return best.index // only where costs are not finite
	}
	return near.two.cheaper(rng)
}

// leastOwn keeps two of the candidates with the lowest own load.
type leastOwn struct {
	load float64
	two  pair
}

// offer takes one more candidate into account.
func (f *leastOwn) offer(c candidate, load float64, rng *rand.Rand) {
	if f.two.seen == 0 || load < f.load {
		f.load, f.two = load, pair{}
	}
	if load == f.load {
		f.two.offer(c, rng)
	}
}
