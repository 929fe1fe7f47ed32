package selection

import (
	"math"
	"math/rand/v2"
)

// Expected takes the upstream with the lowest cost, in seconds. The cost of
// running a job of project p at upstream u is
//
//	cost(u) = wait(u)                              until a core is free
//	        + fetch(p, u)                          to fetch what is not cached at u
//	        + Rank fetch(p, u) again(p) rank(p, u) crowd(u)   only where p is not cached at u
//	        + stop(u)                              what a stop of u would lose
//
//	wait(u)  = (jobs ahead + 1) / rate(u)          if no core is free, else 0; of jobs that hold or need one
//	fetch(p, u) = price(p) (1 - warm(p, u))
//	price(p) = Fetch sqrt(service · time to fetch)   as later jobs share what was fetched
//	crowd(u) = max(1, Crowding (jobs / cores)²)
//	stop(u)  = P(a job outlasts u) (left + time to fetch)
//
// For a prompt, wait(u) is the prefill wait and price(p) is the time to read it, times one plus the number of prompts
// queued behind it. An upstream other than the first-ranked one costs (0.4 + FirstPlaceHitRate) price(p) (1 - warm(p, u))
// more, where nothing of the prompt is cached.
//
// The service time is how long a core takes for a job, in the median of the upstreams. It
// is the unit of all constants: where all times are ten times as short, the rule makes
// the same choices.
//
// The rank is the place of u in the rendezvous order of p, from 0 to 5. All
// sidecars have the same order, so they agree where a project goes that is cached
// nowhere. If they disagreed, several upstreams would fetch its data; in a pool
// that is crowded these fetches delay others. That matters only if another job of
// p comes: again is how likely that is.
//
// Of the cheapest cached upstreams, one with the fewest of this sidecar's own jobs is drawn, because not all
// sidecars should take the same. A job without a project is cached everywhere.
//
// An upstream without a fresh report counts as loaded as the median of the others,
// and more if this sidecar has more jobs there than elsewhere. If fewer than half
// of the upstreams have one, Expected chooses as BoundedHash does except for prompts, but an
// upstream where the project is cached comes first, and a project that hardly comes again
// goes where LeastInFlight sends it: nobody needs to agree on that.
//
// Sources: Mooncake and llm-d (waits against fetches in seconds), Mitzenmacher
// and Dahlin (stale reports), Thaler and Ravishankar (rendezvous). Use it
// wherever upstreams report.
type Expected struct {
	// Spare is the share of an upstream's cores that counts as taken by jobs that
	// others have sent there since its report.
	Spare float64
	// Fetch and Rank are prices, and Crowding is the growth of the latter.
	Fetch, Rank, Crowding float64
	// Tail is how long jobs last, in service times: a job outlasts t with a probability of Tail / t.
	Tail float64
}

// DefaultExpected is the policy with the constants that were found to be good.
func DefaultExpected() *Expected {
	return &Expected{Spare: 0.2, Fetch: 0.2, Rank: 1.5, Crowding: 4.5, Tail: 0.4}
}

// longest is the assumed maximum duration of a job, in service times. Without it, an upstream that stops tomorrow
// would cost Tail service times more than one that never stops, and jobs would fetch what it has cached elsewhere.
const longest = 1800

// comesOnce is the probability above which a project is assumed to have no other job.
const comesOnce = 0.9

var _ interface {
	Coster
	Local
} = (*Expected)(nil)

// Local implements Local: all ranks from the fifth on cost the same, and of
// upstreams with equal cost the first in rendezvous order is chosen.
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
	if !job.Prompt && 2*p.load.known < len(views) { // the prefill wait needs no report
		if i, ok := (BoundedHash{}).first(job, views, p.cached); ok && job.Project != 0 {
			return i
		}
		if job.Once > comesOnce {
			return LeastInFlight{}.Pick(job, views, rng)
		}
		return BoundedHash{}.Pick(job, views, rng)
	}
	cached, other := none(), none()
	var fewest Least // of the cheapest cached ones
	for i := range views {
		v := &views[i]
		switch cost := costs[i].Total; {
		case p.cached(v):
			if cached.beatenBy(cost) {
				cached, fewest = candidate{i, cost}, Least{}
			}
			if cost == cached.cost {
				fewest.Offer(i, v.OwnLoad(), rng)
			}
		case other.beatenBy(cost),
			cost == other.cost && p.order.score(v, 0) > p.order.score(&views[other.index], 0): // so all agree
			other = candidate{i, cost}
		}
	}
	if cached.index == nowhere || other.cost < cached.cost {
		return other.index
	}
	return fewest.Index()
}

// pricing is the rule for one job: what depends on all views together. It lives for
// one pick, on the stack.
type pricing struct {
	*Expected
	job   Job
	load  loads
	fetch float64 // price of a fetch, in seconds
	order order   // of the project
	first ranking // the first views in that order
}

func (p *pricing) prepare(e *Expected, job Job, views []View) {
	p.Expected, p.job = e, job
	p.load = newLoads(views)
	if job.Project != 0 {
		p.fetch = e.Fetch * math.Sqrt(job.service()*job.Fetch)
		p.order = newOrder(job.Project, views)
		p.first.rank(p.order, views)
	}
}

// cached reports whether the project counts as cached at v.
func (p *pricing) cached(v *View) bool { return v.Cache != NotCached || p.job.Project == 0 }

// cost is the cost of running the job at v, which has that index.
func (p *pricing) cost(v *View, index int) (c Cost) {
	if p.job.Prompt {
		c = p.prompt(v, index)
	} else {
		c = p.data(v, index)
	}
	if tail, longest := p.Tail*p.job.service(), longest*p.job.service(); v.Left > 0 && v.Left < longest {
		left := max(v.Left, tail)
		c.Stop = max(0, tail/left-tail/longest) * (left + p.job.Fetch)
	}
	c.Total = c.Wait + c.Fetch + c.Placement + c.Stop
	return c
}

// data is the cost without that of a stop.
func (p *pricing) data(v *View, index int) (c Cost) {
	jobs := p.load.jobs(v)
	c.Wait = p.wait(v, jobs-v.Coreless)
	if p.job.Project != 0 {
		c.Fetch = p.fetch * (1 - v.Warm)
	}
	if rank := p.first.rankOf(index); rank > 0 && !p.cached(v) {
		perCore := jobs / v.cores()
		c.Placement = p.Rank * c.Fetch * (1 - p.job.Once) * rank * max(1, p.Crowding*perCore*perCore)
	}
	return c
}

// wait is the time until one of v's cores is free for the job, if this many jobs hold or need one: at least
// that of one job if none is free, since joblets are not interrupted. Those that a high job overtakes (View.Overtaken)
// count all the same: a backlog of low jobs shows that long joblets hold the cores, and the job waits for one of these.
// Without them high jobs took 1.05 times as long in simulated days, in the mean.
func (p *pricing) wait(v *View, jobs float64) float64 {
	usable := v.cores() * (1 - p.Spare)
	if jobs < usable {
		return 0
	}
	return (jobs - usable + 1) / p.job.Rate(v)
}
