package selection

import (
	"math"
	"math/rand/v2"
)

// Expected takes the upstream with the lowest cost, in seconds. The cost of running a job of project p at upstream u is
//
//	cost(u) = wait(u)            time until a core is free
//	        + fetch(p, u)        price of fetching the data of p that is not cached at u
//	        + placement(p, u)    surcharge that keeps the jobs of p together, if p is not cached at u
//	        + stop(u)            expected loss if u stops during the job
//
//	wait(u)         = (jobs that hold or wait for a core - usable cores + 1) / rate(u)   0 if a usable core is free
//	fetch(p, u)     = price(p) (1 - warm(p, u))
//	price(p)        = Fetch sqrt(service time · time to fetch p)   less than the time: later jobs reuse the data
//	placement(p, u) = Rank fetch(p, u) again(p) rank(p, u) max(1, Crowding (jobs / cores)²)
//	stop(u)         = P(the job takes longer than u stays up) (time that u stays up + time to fetch p)
//
// The service time is the median over the upstreams of the time that a core needs for a job. All constants are multiples of
// it: if all times are ten times as short, the policy makes the same choices.
//
// rank is the place of u, from 0 to 5, in the rendezvous order of the upstreams where p is not cached. All sidecars
// compute the same order. So they agree on the upstream for a project that is cached nowhere, and on the one for the next
// copy of its data. If they disagreed, several upstreams would fetch the data, and at crowded upstreams these
// fetches would delay other jobs. If p is cached somewhere, up to 1 is added to the rank, because another copy is rarely
// needed. The more open jobs of p this sidecar has, the less is added, because these jobs share the copy. again is the
// probability that p has another job; if it has none, it does not matter where its data is.
//
// For a prompt, wait(u) is the prefill wait, and price(p) is the time to read the prompt, times one plus the number of
// prompts that will queue behind it. If nothing of the prompt is cached at u, and u is not the prompt's first-ranked
// upstream, the surcharge is (0.4 + FirstPlaceHitRate) fetch(p, u).
//
// If several upstreams have p cached at the lowest cost, the one with the fewest of this sidecar's own jobs is taken, so that
// sidecars spread their jobs. A job without a project counts as cached everywhere.
//
// The load of an upstream without a fresh report is estimated as the median of the others, scaled up if this sidecar has
// more jobs there than elsewhere. If fewer than half of the upstreams have a fresh report, assumedLoad replaces the median.
// Then a job of a project that probably has no other job goes to the upstream that LeastInFlight picks.
//
// Sources: Mooncake and llm-d (waits against fetches in seconds), Mitzenmacher and Dahlin (stale reports), Thaler and
// Ravishankar (rendezvous). Use it wherever upstreams report.
type Expected struct {
	// Headroom is the share of an upstream's cores that counts as busy with jobs that other sidecars have sent since
	// its report.
	Headroom float64
	// Fetch, Rank and Crowding are the factors in the formulas above.
	Fetch, Rank, Crowding float64
	// Tail is the assumed distribution of durations: a job takes longer than t service times with probability Tail / t.
	Tail float64
}

// DefaultExpected returns the policy with the constants that the simulations found best.
func DefaultExpected() *Expected {
	return &Expected{Headroom: 0.2, Fetch: 0.2, Rank: 1.5, Crowding: 4.5, Tail: 0.4}
}

// maxDuration is the assumed maximum duration of a job, in service times. Without it, an upstream that stops tomorrow
// would cost Tail service times more than one that never stops, so jobs would avoid it and fetch the data that it has
// cached at other upstreams.
const maxDuration = 1800

// copyShared is the number of a project's open jobs at which 0.5 instead of 1 is added to the rank for another copy. If
// it were always 1, the jobs of a project that is suddenly in demand would wait at one upstream while others are idle.
const copyShared = 3

// oneOffThreshold is the probability above which a project is assumed to have no other job.
const oneOffThreshold = 0.9

var _ interface {
	Coster
	Local
} = (*Expected)(nil)

// Local implements Local: all upstreams from the sixth on have the same rank, and of upstreams with equal cost the
// first in rendezvous order is picked.
func (*Expected) Local() {}

// Pick implements Policy.
func (e *Expected) Pick(job Job, views []View, rng *rand.Rand) int {
	return e.PickWithCosts(job, views, make([]Cost, len(views)), rng)
}

// PickWithCosts implements Coster.
func (e *Expected) PickWithCosts(job Job, views []View, costs []Cost, rng *rand.Rand) int {
	var p pricing
	p.prepare(e, job, views)
	for i := range views {
		costs[i] = p.cost(&views[i], i)
	}
	if !job.Prompt && p.load.blind(len(views)) && job.OneOffProbability > oneOffThreshold { // the prefill wait needs no report
		return LeastInFlight{}.Pick(job, views, rng)
	}
	cached, other := noCandidate(), noCandidate()
	var fewest Least // among the cached candidates of equal, lowest cost
	for i := range views {
		v := &views[i]
		switch cost := costs[i].Total; {
		case p.isCached(v):
			if cached.beatenBy(cost) {
				cached, fewest = candidate{i, cost}, Least{}
			}
			if cost == cached.cost {
				fewest.Offer(i, v.OwnLoad(), rng)
			}
		case other.beatenBy(cost),
			cost == other.cost && p.order.score(v, 0) > p.order.score(&views[other.index], 0): // so that all sidecars agree
			other = candidate{i, cost}
		}
	}
	if cached.index == noView || other.cost < cached.cost {
		return other.index
	}
	return fewest.Index()
}

// pricing holds what the costs of one job have in common for all views. It lives for one pick, on the stack.
type pricing struct {
	*Expected
	job   Job
	load  loads
	fetch float64 // price of a fetch, in seconds
	order order   // of the project
	first ranking // the first views in that order; unless the job is a prompt, without the views that have the project cached

	copyRank float64 // added to the rank of an uncached view if the project is cached somewhere
}

func (p *pricing) prepare(e *Expected, job Job, views []View) {
	p.Expected, p.job = e, job
	p.load = newLoads(views)
	if job.Project != 0 {
		p.fetch = e.Fetch * math.Sqrt(job.service()*job.Fetch)
		p.order = newOrder(job.Project, views)
		p.first.rank(p.order, views, !job.Prompt)
		if p.first.skipped {
			p.copyRank = copyShared / (copyShared + job.Open)
		}
	}
}

// isCached reports whether the project counts as cached at v.
func (p *pricing) isCached(v *View) bool { return v.Cache != NotCached || p.job.Project == 0 }

// cost returns the cost of running the job at v; index is v's index in the views.
func (p *pricing) cost(v *View, index int) (c Cost) {
	if p.job.Prompt {
		c = p.prompt(v, index)
	} else {
		c = p.data(v, index)
	}
	if tail, longest := p.Tail*p.job.service(), maxDuration*p.job.service(); v.UntilStop > 0 && v.UntilStop < longest {
		left := max(v.UntilStop, tail)
		c.Stop = max(0, tail/left-tail/longest) * (left + p.job.Fetch)
	}
	c.Total = c.Wait + c.Fetch + c.Placement + c.Stop
	return c
}

// data returns the cost without the loss by a stop, for a job that is not a prompt.
func (p *pricing) data(v *View, index int) (c Cost) {
	jobs := p.load.jobs(v)
	c.Wait = p.wait(v, jobs-v.BlockedJobs)
	if p.job.Project != 0 {
		c.Fetch = p.fetch * (1 - v.Warm)
	}
	if rank := p.first.rankOf(index) + p.copyRank; rank > 0 && !p.isCached(v) {
		perCore := jobs / v.cores()
		c.Placement = p.Rank * c.Fetch * (1 - p.job.OneOffProbability) * rank * max(1, p.Crowding*perCore*perCore)
	}
	return c
}

// wait returns the time until a core of v is free for the job, if this many jobs hold or need one. If no core is free,
// it is at least the time of one job, since joblets are not interrupted. Jobs that a high job overtakes
// (View.Overtaken) count, too: if low jobs queue, long joblets probably hold the cores, and the high job waits for one
// of them. Without the overtaken jobs, high jobs took 1.05 times as long in simulated days, on average.
func (p *pricing) wait(v *View, jobs float64) float64 {
	usable := v.cores() * (1 - p.Headroom)
	if jobs < usable {
		return 0
	}
	return (jobs - usable + 1) / p.job.Rate(v)
}
