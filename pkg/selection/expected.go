package selection

import "math/rand/v2"

// Expected takes the upstream where the job can be expected to complete
// first, every consideration priced in seconds:
//
//	wait       1.5 times the jobs that wait there by the upstream's rate, since
//	           others claim as well while a report ages, and an eighth of
//	           the cores counts as taken for that; or a shadow price
//	           that grows as the free cores go
//	fetch      (1 - Warm) the project's fetch time
//	placement  cold only: one fetch for every rank down the project's
//	           rendezvous order, so that sidecars agree where a cold project
//	           goes; more as the pool fills up, for disagreement multiplies
//	           fetches, and a pool that is behind falls further behind by them
//	stop       what a stop before the job's end would lose
//
// Cached upstreams whose costs differ by less than reports of their age can
// tell are equals. Of these, those with the fewest of
// this sidecar's own jobs are left, and the cheaper of two random ones is
// taken, lest all sidecars herd to one.
//
// Completion times by waits and fetches, not by the jobs' own lengths: those
// are too variable to predict, and the same wherever the job runs.
//
// Sources: Mooncake and llm-d (waits against fetches in seconds), Mitzenmacher
// and Dahlin (stale reports), Thaler and Ravishankar (rendezvous). Use it
// wherever upstreams report; it degrades to own counts where they do not.
// A job without a project is at home everywhere.
type Expected struct {
	c ExpectedConfig
}

// NewExpected returns the policy, or an error that names the parameter that
// makes no sense.
func NewExpected(config ExpectedConfig) (*Expected, error) {
	if err := config.resolve(); err != nil {
		return nil, err
	}
	return &Expected{c: config}, nil
}

// Pick implements Policy.
func (e *Expected) Pick(job Job, views []View, rng *rand.Rand) int {
	var s survey
	s.look(&e.c, job, views)
	cached, home, other := 0, nobody(), nobody()
	for rank, i := range s.order.views[:s.order.n] {
		if !s.warm(&views[i]) {
			s.offer(&other, i, s.price(&views[i], float64(rank)).total(), views)
		}
	}
	for i := range views {
		v := &views[i]
		if s.warm(v) {
			cached++
			home.offer(i, s.price(v, lastRank).total())
		} else if other.total >= s.perRank*lastRank { // else the rank alone costs more
			s.offer(&other, i, s.price(v, lastRank).total(), views)
		}
	}
	switch {
	case cached == 0 || home.total > other.total:
		return other.index
	case cached == 1:
		return home.index
	}
	return s.nearEqual(home, views, rng)
}

// Costs implements Coster.
func (e *Expected) Costs(job Job, views []View, costs []Cost) {
	var s survey
	s.look(&e.c, job, views)
	for i := range views {
		costs[i] = s.price(&views[i], lastRank).cost()
	}
	for rank, i := range s.order.views[:s.order.n] {
		costs[i] = s.price(&views[i], float64(rank)).cost()
	}
}

var _ Coster = (*Expected)(nil)
