package selection

import "math/rand/v2"

// nearEqual chooses among the cached views that cost about as little as the
// best. What reports of their age cannot tell, this sidecar's own jobs there
// do, of which it knows exactly; and of two random ones of the views with the
// fewest the cheaper is taken.
func (s *survey) nearEqual(best candidate, views []View, rng *rand.Rand) int {
	limit := best.total + s.band(&views[best.index])
	var near leastOwn
	for i := range views {
		v := &views[i]
		if !s.warm(v) {
			continue
		}
		if total := s.price(v, lastRank).total(); total <= limit {
			near.offer(candidate{i, total}, ownLoad(v), rng)
		}
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
