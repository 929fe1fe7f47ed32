package selection

import (
	"math"
	"math/rand/v2"

	"example.org/pilotfish/internal/hash"
)

// blindFactor is how far above the mean an upstream may be where nothing is known
// of loads: tighter than is usual, since the own jobs are but a sample of all.
const blindFactor = 1.3

// Pick implements Policy.
func (e *Expected) Pick(job Job, views []View, rng *rand.Rand) int {
	var p pricing
	p.prepare(&e.c, job, views)
	return p.pick(views, rng)
}

// Costs implements Coster.
func (e *Expected) Costs(job Job, views []View, costs []Cost) {
	var p pricing
	p.prepare(&e.c, job, views)
	p.costs(views, costs)
}

// PickWithCosts implements Coster.
func (e *Expected) PickWithCosts(job Job, views []View, costs []Cost, rng *rand.Rand) int {
	var p pricing
	p.prepare(&e.c, job, views)
	p.costs(views, costs)
	p.known = costs
	return p.pick(views, rng)
}

// Local implements Local: all ranks from the fifth on cost the same, and of equals the
// earliest is taken.
func (e *Expected) Local() {}

// pick chooses one of the views.
func (p *pricing) pick(views []View, rng *rand.Rand) int {
	if p.blind {
		b := BoundedHash{Factor: blindFactor}
		if i, ok := b.first(p.job, views, p.cached); ok && p.job.Project != 0 {
			return i
		}
		return b.Pick(p.job, views, rng)
	}
	cached, n := p.cheapestCached(views)
	other := p.cheapestOther(views)
	switch {
	case n == 0 || cached.cost > other.cost:
		return other.index
	case n == 1:
		return cached.index
	}
	return p.nearEqual(cached, views, rng)
}

// costs fills in the costs of all views.
func (p *pricing) costs(views []View, costs []Cost) {
	for i := range views {
		costs[i] = p.price(&views[i], p.first.rankOf(i)).cost()
	}
}

// total is the total cost of view i, which has that rank.
func (p *pricing) total(views []View, i int, rank float64) float64 {
	if p.known != nil {
		return p.known[i].Total
	}
	return p.price(&views[i], rank).total()
}

// cheapestCached is the cheapest view where the project is cached, and how many
// such views there are.
func (p *pricing) cheapestCached(views []View) (best candidate, n int) {
	best = none()
	for i := range views {
		if !p.cached(&views[i]) {
			continue
		}
		n++
		if cost := p.total(views, i, lastRank); best.beatenBy(cost) {
			best = candidate{i, cost}
		}
	}
	return best, n
}

// cheapestOther is the cheapest view where the project is not cached. Of equals
// it is the earliest in rendezvous order, so that all sidecars agree.
func (p *pricing) cheapestOther(views []View) candidate {
	best := none()
	consider := func(i int, rank float64) {
		cost := p.total(views, i, rank)
		if best.beatenBy(cost) || cost == best.cost &&
			p.order.score(&views[i], 0) > p.order.score(&views[best.index], 0) {
			best = candidate{i, cost}
		}
	}
	for rank, i := range p.first.views[:p.first.n] {
		if !p.cached(&views[i]) {
			consider(i, float64(rank))
		}
	}
	for i := range views {
		if !(best.cost >= p.perRank*lastRank) {
			break // the last rank alone costs more
		}
		if !p.cached(&views[i]) {
			consider(i, lastRank)
		}
	}
	return best
}

// nearEqual chooses among the cached views whose costs count as equal to that
// of the cheapest. It keeps those with the fewest own jobs, draws two of them,
// and takes the cheaper one.
func (p *pricing) nearEqual(cheapest candidate, views []View, rng *rand.Rand) int {
	limit := cheapest.cost + p.band(&views[cheapest.index])
	fewest, drawn := math.Inf(1), pair{}
	for i := range views {
		v := &views[i]
		if !p.cached(v) {
			continue
		}
		cost, own := p.total(views, i, lastRank), v.OwnLoad()
		if !(cost <= limit) || own > fewest {
			continue
		}
		if own < fewest {
			fewest, drawn = own, pair{}
		}
		drawn.offer(candidate{i, cost}, rng)
	}
	if drawn.seen == 0 {
		return cheapest.index // only where costs are not finite
	}
	return drawn.cheaper(rng)
}

// pricing is the rule for one job: the parameters, and what depends on all
// views together. It lives for one pick, on the stack.
type pricing struct {
	c     *ExpectedConfig
	job   Job
	rates Rates
	load  loads
	blind bool // too little is known of the load

	perWait   float64 // price of waiting for one second
	usable    float64 // share of an upstream's cores that may look free
	fetch     float64 // price of a fetch, in seconds
	perRank   float64 // price of one rank where cores are free, in seconds
	stops     float64 // a stop has a price if it is closer than this, in seconds
	slowStart float64 // an upstream that is up for less is starting, in seconds

	order order   // of the project
	first ranking // the first views in that order

	known []Cost // of all views, if they were computed before the pick
}

// prepare fills the pricing in. A part that is off leaves its price at nothing.
func (p *pricing) prepare(c *ExpectedConfig, job Job, views []View) {
	p.c, p.job = c, job
	on := func(part Part) bool { return c.Off&part == 0 }
	p.rates = NewRates(views, c.CoreRate)
	p.load = newLoads(views)
	p.blind = 2*p.load.known < len(views)
	p.perWait = 1
	if on(PartWaitPrice) {
		p.perWait = c.WaitPrice
	}
	if c.LengthPower > 0 && job.Length > 0 {
		const most = 4
		p.perWait = max(1, p.perWait*min(max(math.Pow(job.Length, -c.LengthPower), 1.0/most), most))
	}
	p.usable = 1
	if on(PartSpare) {
		p.usable -= c.Spare
	}
	if on(PartStop) {
		p.stops = c.LongestJob
	}
	if on(PartSlowStart) {
		p.slowStart = c.SlowStart
	}
	if job.Project == 0 {
		return
	}
	p.fetch = job.Fetch
	if on(PartFetchPrice) {
		p.fetch = c.FetchScale * math.Pow(job.Fetch, c.FetchPower)
	}
	if on(PartShare) {
		p.fetch /= 1 + c.FetchShare*job.Open
	}
	if on(PartPlacement) {
		p.perRank = c.RankPrice * p.fetch
	}
	p.order = newOrder(job.Project, views)
	p.first.rank(p.order, views)
}

// price is a Cost without its total. The compiler keeps structs of up to four
// fields in registers: with a thousand views, a pick takes half as long as with Cost.
type price struct{ wait, fetch, placement, stop float64 }

func (p price) total() float64 { return p.wait + p.fetch + p.placement + p.stop }

func (p price) cost() Cost {
	return Cost{Total: p.total(), Wait: p.wait, Fetch: p.fetch, Placement: p.placement, Stop: p.stop}
}

// price is the price of running the job at v, which has that rank.
func (p *pricing) price(v *View, rank float64) price {
	c := price{wait: p.wait(v)}
	if p.job.Project != 0 && v.Warm < 1 {
		c.fetch = p.fetch * (1 - v.Warm) * v.fetchFactor()
	}
	if !p.cached(v) {
		if v.Uptime < p.slowStart && p.tooNew(v) {
			rank += lastRank
			c.placement = p.slowStart - v.Uptime
		}
		c.placement += p.perRank * rank * p.crowd(v)
	}
	if v.Left < p.stops {
		c.stop = p.lost(v.Left)
	}
	return c
}

// cached reports whether the project counts as cached at v.
func (p *pricing) cached(v *View) bool {
	return v.Warm >= p.c.WarmAt || p.job.Project == 0
}

// ahead is how many jobs wait at v, and how full its usable cores are, 0 to 1.
// Low jobs count for a high job as well: it overtakes those that wait, but not
// the joblets that run.
func (p *pricing) ahead(v *View) (jobs, full float64) {
	cores := v.cores() * p.usable
	here := p.load.jobs(v)
	jobs = max(0, here-cores, v.Stalled)
	if jobs > 0 || here >= cores {
		return jobs, 1
	}
	return 0, max(0, here/cores)
}

// crowdedAt bounds the jobs per core that make a placement dearer.
const crowdedAt = 10

// crowd is the factor on the price of placing the project at v.
func (p *pricing) crowd(v *View) float64 {
	if p.c.Off&PartCrowding != 0 {
		return 1
	}
	perCore := min(p.load.jobs(v)/v.cores(), crowdedAt)
	return max(1, p.c.Crowding*perCore*perCore)
}

// wait is the price of the time until a core is free. It is at least the time
// of one job, since joblets are not interrupted. The price of a free core grows
// to the same time.
func (p *pricing) wait(v *View) float64 {
	jobs, full := p.ahead(v)
	if full < 1 {
		if p.c.Off&PartShadow != 0 {
			return 0
		}
		full *= full
		full *= full
		return full / p.rates.Of(v)
	}
	return p.perWait * (jobs + 1) / p.rates.Of(v)
}

const (
	// slowStartFloor is the share of the projects that an upstream takes at the
	// moment of its start.
	slowStartFloor = 0.1
	// slowStartSalt makes this share independent of the rendezvous order.
	slowStartSalt = 0x9e3779b97f4a7c15
)

// tooNew reports whether v came up too recently to take this project. All
// sidecars say the same.
func (p *pricing) tooNew(v *View) bool {
	share := max(slowStartFloor, v.Uptime/p.slowStart)
	return fraction(hash.Mix(rendezvousHash(p.job.Project, v.ID)^slowStartSalt)) >= share
}

// lost is the time that a stop in left seconds is expected to cost.
func (p *pricing) lost(left float64) float64 {
	left = max(left, p.c.TailScale)
	outlasts := p.c.TailScale/left - p.c.TailScale/p.c.LongestJob
	return max(0, outlasts) * (left + p.job.Fetch)
}

// band is the difference in cost that reports as old as v's cannot tell: the
// price of waiting for as many jobs as the standard deviation of those that may
// have come since.
func (p *pricing) band(v *View) float64 {
	if p.c.Off&PartBand != 0 {
		return 0
	}
	if _, full := p.ahead(v); full < 1 {
		return p.c.Band
	}
	const oldest = 60 // s; of older reports nothing is known
	came := min(v.Age, oldest) / p.rates.Of(v)
	return max(p.c.Band, p.c.BandWidth*p.perWait*math.Sqrt(came))
}
