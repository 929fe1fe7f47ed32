package selection

import "math"

const (
	// slowStartFloor is the share of cold placements at the moment of a start.
	slowStartFloor = 0.1
	// rampSalt makes the projects admitted during a slow start independent of
	// the rendezvous order.
	rampSalt = 0x9e3779b97f4a7c15
)

// price is what running the job at one view is expected to cost, by cause.
type price struct{ wait, fetch, placement, stop float64 }

// total is the price in all.
func (p price) total() float64 { return p.wait + p.fetch + p.placement + p.stop }

// cost is the price with its total.
func (p price) cost() Cost {
	return Cost{Total: p.total(), Wait: p.wait, Fetch: p.fetch, Placement: p.placement, Stop: p.stop}
}

// price is the expected cost of running the job at v, which is at that rank
// of the rendezvous order.
func (s *survey) price(v *View, rank float64) price {
	p := price{wait: s.wait(v)}
	if s.job.Project != 0 && v.Warm < 1 {
		p.fetch = s.job.Fetch * (1 - v.Warm) * factorOf(v)
	}
	if !s.warm(v) {
		if v.Uptime < s.slowStart && s.refused(v) {
			rank += lastRank // behind all that take it
			p.placement = s.slowStart - v.Uptime
		}
		p.placement += s.perRank * rank
	}
	if v.Left < s.stops {
		p.stop = s.lost(v.Left)
	}
	return p
}

// ahead is how many jobs wait at v, and how full v's usable cores are, 0 to 1. A
// high job will overtake the low ones, yet is better off where none wait: a
// joblet that runs is not interrupted.
func (s *survey) ahead(v *View) (jobs, full float64) {
	cores := coresOf(v) * s.usable
	jobs = max(0, v.Jobs-cores, v.Stalled)
	if jobs > 0 || v.Jobs >= cores {
		return jobs, 1
	}
	return 0, max(0, v.Jobs/cores)
}

// wait is the price of the time to a free core: that of the jobs ahead and one
// more, since joblets are not interrupted. As long as usable cores are free it is a
// shadow price that grows to one job's time: the free cores taken now are
// missed by the jobs that come next.
func (s *survey) wait(v *View) float64 {
	jobs, full := s.ahead(v)
	if full < 1 {
		if s.c.Off&PartShadow != 0 {
			return 0
		}
		full *= full
		full *= full
		return full / rateOf(v, s.coreRate)
	}
	return s.perWait * (jobs + 1) / rateOf(v, s.coreRate)
}

// refused reports whether v came up too recently to take this project: it
// admits a growing share of the projects, the same in every sidecar.
func (s *survey) refused(v *View) bool {
	share := max(slowStartFloor, v.Uptime/s.slowStart)
	return fraction(mix(rendezvousHash(s.job.Project, v.ID)^rampSalt)) >= share
}

// lost is the time that a stop in left seconds is expected to cost: the
// chance that the job lasts longer, times the work and the fetch to repeat.
func (s *survey) lost(left float64) float64 {
	left = max(left, s.c.TailScale)
	outlasts := s.c.TailScale/left - s.c.TailScale/s.c.LongestJob
	return max(0, outlasts) * (left + s.job.Fetch)
}

// band is the difference in cost that reports as old as v's cannot tell: the
// price of the wait for the standard deviation of the jobs that may have come
// since.
func (s *survey) band(v *View) float64 {
	if s.c.Off&PartBand != 0 {
		return 0
	}
	if _, full := s.ahead(v); full < 1 {
		return s.c.Band
	}
	const oldest = 60 // s; nothing is known of older ones
	came := min(s.job.Busy, 1) * min(v.Age, oldest) / rateOf(v, s.coreRate)
	return max(s.c.Band, s.c.BandWidth*s.perWait*math.Sqrt(came))
}
