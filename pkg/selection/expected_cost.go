package selection

import "math"

const (
	// lastRank is the rank of all views behind the first in rendezvous order.
	lastRank = 5
	// unknownCores stands in where an upstream's cores are not known.
	unknownCores = 8
	// slowStartFloor is the share of cold placements at the moment of a start.
	slowStartFloor = 0.1
	// rampSalt makes the projects admitted during a slow start independent of
	// the rendezvous order.
	rampSalt = 0x9e3779b97f4a7c15
)

// survey is what Expected finds out about all views together before it weighs
// each: it lives for one pick, on the stack.
type survey struct {
	c   *ExpectedConfig
	job Job
	// coreRate stands in for rates that are not known.
	coreRate float64
	// social is the price of a second of fetching.
	social float64
	// homes is how many views are warm; next is the index of the view that the
	// project deserves as a further home, or nowhere.
	homes int
	next  int
	// by compares in the project's rendezvous order; order is the first of it.
	by    order
	order ranking
}

// look fills the survey in.
func (s *survey) look(c *ExpectedConfig, job Job, views []View) {
	s.c, s.job, s.next = c, job, nowhere
	s.social = 1
	if c.Off&PartSocial == 0 {
		s.social += job.Busy
	}
	s.coreRate = meanCoreRate(views, c.CoreRate)
	if job.Project == 0 {
		return
	}
	s.by = newOrder(job.Project, views)
	s.order.limit = min(max(lastRank, job.Homes), maxRanked)
	for i := range views {
		if s.warm(&views[i]) {
			s.homes++
		}
		s.order.add(i, s.by.score(&views[i], s.order.floor()))
	}
	if c.Off&PartHomes == 0 && s.homes > 0 && s.homes < job.Homes {
		s.next = s.nextHome(views)
	}
}

// meanCoreRate is the jobs that a core completes in a second, averaged over
// the views whose rates are known; standard when none is.
func meanCoreRate(views []View, standard float64) float64 {
	var rate, cores float64
	for i := range views {
		if views[i].Rate > 0 {
			rate += views[i].Rate
			cores += coresOf(&views[i])
		}
	}
	if cores == 0 {
		return standard
	}
	return rate / cores
}

// coresOf is a view's cores, or a stand-in when they are not known.
func coresOf(v *View) float64 {
	if v.Cores > 0 {
		return v.Cores
	}
	return unknownCores
}

// nextHome is the first view in rendezvous order that is not a home yet and
// may become one.
func (s *survey) nextHome(views []View) int {
	for _, i := range s.order.views[:s.order.n] {
		if v := &views[i]; !s.warm(v) && !s.stopsSoon(v) && !s.refused(v) {
			return i
		}
	}
	return nowhere
}

// warm reports whether the project counts as cached there, now or when a
// fetch under way ends.
func (s *survey) warm(v *View) bool {
	return s.job.Project == 0 || v.Warm >= s.c.WarmAt || v.FetchLeft > 0 && s.c.Off&PartJoin == 0
}

// before reports whether v precedes w in the project's rendezvous order.
func (s *survey) before(v, w *View) bool {
	return s.by.score(v, 0) > s.by.score(w, 0)
}

// gain is what a move to the view at index must bring.
func (s *survey) gain(index int) float64 {
	if index == s.next || s.c.Off&PartHysteresis != 0 {
		return 0
	}
	return s.c.Hysteresis * s.job.Fetch
}

// placed is the cost of the view at a known rank of the rendezvous order.
func (s *survey) placed(views []View, rank int) Cost {
	i := s.order.views[rank]
	cost := s.cost(&views[i], min(float64(rank), lastRank))
	if i == s.next {
		// The waits that earned the project this home have paid for its fetch.
		cost.Placement = -cost.Fetch
		cost.Total = cost.Wait + cost.Stop
	}
	return cost
}

// cost is what running the job at v is expected to cost.
func (s *survey) cost(v *View, rank float64) Cost {
	var c Cost
	c.Wait = s.wait(v)
	if s.job.Project != 0 {
		c.Fetch = s.fetch(v, c.Wait)
	}
	cold := !s.warm(v)
	if cold && s.c.Off&PartPlacement == 0 {
		c.Placement = s.c.RankPrice * s.job.Fetch * rank
	}
	if cold && s.refused(v) {
		c.Placement += s.c.SlowStart - v.Uptime
	}
	if s.c.Off&PartStop == 0 && v.Left < s.c.LongestJob {
		c.Stop = s.lost(v.Left)
	}
	if cold && s.stopsSoon(v) {
		c.Stop += s.c.LastCold
	}
	c.Total = c.Wait + c.Fetch + c.Placement + c.Stop
	return c
}

// rate is the jobs that v completes in a second when it is full.
func (s *survey) rate(v *View) float64 {
	if v.Rate > 0 {
		return v.Rate
	}
	return s.coreRate * coresOf(v)
}

// ahead is how many jobs wait at v ahead of this one, and how full v's cores
// are, 0 to 1.
func (s *survey) ahead(v *View) (jobs, full float64) {
	cores := coresOf(v)
	if s.job.Priority == High && s.c.Off&PartPriority == 0 {
		jobs = max(0, v.JobsHigh-cores, v.StalledHigh)
	} else {
		jobs = max(0, v.Jobs-cores, v.Stalled)
	}
	if jobs > 0 || v.Jobs >= cores {
		return jobs, 1
	}
	return 0, max(0, v.Jobs/cores)
}

// wait is the time to a free core: that of the jobs ahead and one more, since
// joblets are not interrupted. As long as cores are free it is a shadow price
// that meets the wait of a full upstream: the free cores taken now are
// missed by the jobs that come next.
func (s *survey) wait(v *View) float64 {
	jobs, full := s.ahead(v)
	if full < 1 {
		if s.c.Off&PartShadow != 0 {
			return 0
		}
		full *= full
		full *= full
	}
	return (jobs + full) / s.rate(v)
}

// fetch is what the job waits for the project's data beyond its wait for a core.
func (s *survey) fetch(v *View, wait float64) float64 {
	if v.FetchLeft > 0 && s.c.Off&PartJoin == 0 {
		return max(0, v.FetchLeft-wait)
	}
	factor := v.FetchFactor
	if !(factor > 0) {
		factor = 1
	}
	return s.social * (1 - v.Warm) * s.job.Fetch * factor
}

// refused reports whether v came up too recently to take this project: it
// admits a growing share of the projects, the same in every sidecar.
func (s *survey) refused(v *View) bool {
	if s.c.Off&PartSlowStart != 0 || !(v.Uptime < s.c.SlowStart) {
		return false
	}
	share := max(slowStartFloor, v.Uptime/s.c.SlowStart)
	return fraction(mix(rendezvousHash(s.job.Project, v.ID)^rampSalt)) >= share
}

// stopsSoon reports whether data fetched to v would soon be lost.
func (s *survey) stopsSoon(v *View) bool {
	return s.c.Off&PartStop == 0 && v.Left < s.c.LastCold
}

// lost is the time that a stop in left seconds is expected to cost: the
// chance that the job lasts longer, times the work and the fetch to repeat.
func (s *survey) lost(left float64) float64 {
	outlasts := s.c.TailScale/max(left, s.c.TailScale) - s.c.TailScale/s.c.LongestJob
	return max(0, outlasts) * (left + s.job.Fetch)
}

// band is the difference in cost that reports as old as v's cannot tell: the
// standard deviation of the jobs that may have come since, as time.
func (s *survey) band(v *View) float64 {
	if s.c.Off&PartBand != 0 {
		return 0
	}
	if _, full := s.ahead(v); full < 1 {
		return s.c.Band
	}
	const oldest = 60 // s; nothing is known of older ones
	came := s.job.Busy * min(v.Age, oldest) / s.rate(v)
	return max(s.c.Band, s.c.BandWidth*math.Sqrt(came))
}
