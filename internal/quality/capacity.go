package quality

import (
	"math"
	"sort"
	"time"

	"example.org/pilotfish/internal/pool"
)

// Work is counted in cores: a job with three core-seconds needs one core in each of three seconds. The advice assumes
// that jobs are spread evenly over the upstreams, and ignores caches.

// Fleet is the size of the fleet.
type Fleet struct {
	// Upstreams is the number of upstreams, Cores the sum of their cores. If no upstream reports its cores, Cores is the
	// number of jobs that they can process at one time.
	Upstreams int     `json:"upstreams"`
	Cores     float64 `json:"cores"`
}

// Advice is the capacity of a fleet, its utilisation, and the upstreams that it needs.
type Advice struct {
	Fleet
	// CoreSecondsPerJob is the mean work of a job. JobsPerSecond is the throughput at which all
	// cores are busy: the fleet's break point.
	CoreSecondsPerJob float64 `json:"core_seconds_per_job"`
	JobsPerSecond     float64 `json:"jobs_per_second"`
	// CoveredSeconds is the length of the observed load.
	CoveredSeconds float64 `json:"covered_seconds"`
	// Full is the number of cores that the jobs of the last minute needed, divided by the fleet's cores. FullBusiest is
	// this ratio for the busiest minute. Above 1, the fleet is too small.
	Full        float64 `json:"full"`
	FullBusiest float64 `json:"full_in_busiest_minute"`
	// Needed is the number of upstreams with which the fleet would be steady in the busiest minute.
	Needed int `json:"upstreams_needed"`
	// NeverFull is set if no upstream reports its cores, and the queue did not grow in the observed time. Then jobs_per_second
	// is a lower bound, and upstreams_needed an upper bound.
	NeverFull bool `json:"never_full,omitempty"`
	// ForTarget is the number of upstreams that would keep quality.target in the busiest minute; absent without a target, and while
	// the fleet was never full.
	ForTarget *int `json:"upstreams_for_target,omitempty"`
	// CostPerJob is the cost of the upstreams in the observed time, divided by the jobs; absent without
	// quality.upstream_price.
	CostPerJob *float64 `json:"cost_per_job,omitempty"`

	// ProjectCosts is the cost of the projects with the most time at upstreams, and of the rest, by the jobs of this sidecar in
	// the last 30 to 60 minutes; absent without quality.upstream_price.
	ProjectCosts []ProjectCost `json:"project_costs,omitempty"`

	busiest, jobs float64 // cores needed in the busiest minute, and total number of jobs
	costs         *costs  // nil unless a Machine made the advice
}

// Plan sets ForTarget, CostPerJob and ProjectCosts, if the settings require them.
func (a *Advice) Plan(s Settings) {
	if t := s.Target.WaitP95; t > 0 && !a.NeverFull {
		low := int(a.busiest*float64(a.Upstreams)/a.Cores) + 1 // with fewer, the queue grows
		a.ForTarget = new(low + sort.Search(max(0, a.Needed-low), func(i int) bool {
			return waitsLonger(float64(low+i)*a.Cores/float64(a.Upstreams), a.busiest, a.CoreSecondsPerJob, t.Seconds()) <= 0.05
		}))
	}
	if s.UpstreamPrice > 0 {
		cost := s.UpstreamPrice * float64(a.Upstreams) * a.CoveredSeconds / time.Hour.Seconds() / a.jobs
		a.CostPerJob = &cost
		if a.costs == nil {
			return
		}
		list, all := a.costs.list()
		for i := range list {
			list[i].Cost = cost * float64(all.Jobs) * list[i].UpstreamSeconds / max(all.UpstreamSeconds, 1e-9)
		}
		a.ProjectCosts = list
	}
}

// waitsLonger returns the share of jobs that wait longer than t for a core in an M/M/k queue, by Erlang's C formula.
// busy is the mean number of busy cores, seconds the mean core-seconds of a job.
func waitsLonger(cores, busy, seconds, t float64) float64 {
	blocked := 1.0 // Erlang B
	for k := 1.0; k <= cores; k++ {
		blocked = busy * blocked / (k + busy*blocked)
	}
	waits := blocked / (1 - busy/cores*(1-blocked))
	return waits * math.Exp(-(cores-busy)*t/seconds)
}

// maxUpstreams bounds the advised number of upstreams.
const maxUpstreams = 1_000_000

// headroom is how many standard deviations the number of cores must exceed the mean number of busy cores, so that 99 of 100
// jobs find a free core. The standard deviation is the square root of the mean.
const headroom = 2.33

// Advise returns the capacity of a fleet, and the upstreams that it needs for an observed load. The load is given in
// steps of equal length: the number of jobs in each, and the mean number of cores that they needed, which can exceed
// the fleet's. Advise returns nil if the fleet has no upstream or no cores, or if the load has no jobs or needs no cores.
func Advise(f Fleet, step time.Duration, jobs, cores []float64) *Advice {
	arrived, work := sum(jobs), sum(cores)
	if f.Upstreams < 1 || !(f.Cores > 0) || !(arrived > 0) || !(work > 0) {
		return nil
	}
	a := &Advice{Fleet: f, CoveredSeconds: float64(len(jobs)) * step.Seconds(), CoreSecondsPerJob: work * step.Seconds() / arrived, jobs: arrived}
	a.JobsPerSecond = f.Cores / a.CoreSecondsPerJob
	width := min(max(1, int(time.Minute/step)), len(jobs)) // a load shorter than a minute counts as the busiest minute
	for end := width; end <= len(jobs); end++ {
		needed := sum(cores[end-width:end]) / float64(width)
		a.Full = needed / f.Cores
		a.busiest = max(a.busiest, needed)
	}
	a.FullBusiest = a.busiest / f.Cores
	free := headroom * math.Sqrt(a.busiest)
	a.Needed = int(min(max(1, math.Ceil((a.busiest+free)*float64(f.Upstreams)/f.Cores)), maxUpstreams))
	return a
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

// advice returns the advice for the load of the last hour; nil while unknown.
func (m *Machine) advice(now time.Time, states []pool.State) *Advice {
	f, points := fleetOf(states), m.Points(now)
	var a *Advice
	if f.Cores == 0 {
		a = adviceBySlots(f, points)
	} else {
		var jobs, cores []float64
		for _, p := range points {
			jobs = append(jobs, p.rate/p.moments*step.Seconds())
			cores = append(cores, p.cores/p.moments)
		}
		a = Advise(f, step, jobs, cores)
	}
	if a != nil {
		a.costs = &m.costs
	}
	return a
}

// adviceBySlots returns the advice for upstreams that do not report their cores, such as servers of language models and query
// engines, from this sidecar's own jobs. Each job at an upstream takes a slot, and slots count instead of cores.
//
// By Little's law, the mean time of a job at an upstream is the number of jobs there divided by the jobs per second.
// While the queue does not grow, that is the time that a job needs. While the queue grows, all slots are taken, so
// their number is the jobs completed per second times that time. If the queue never grew, the upstreams have at least
// as many slots as were ever taken.
func adviceBySlots(f Fleet, points []Point) *Advice {
	taken, done := 0.0, 0.0
	for _, p := range points {
		if p.grew == 0 {
			taken, done = taken+p.own/p.moments, done+p.done/p.moments
		}
	}
	if !(done > 0) {
		return nil
	}
	var jobs, slots []float64
	most, full := 0.0, 0.0
	for _, p := range points {
		arrive := p.rate / p.moments
		jobs, slots = append(jobs, arrive*step.Seconds()), append(slots, arrive*taken/done)
		if most = max(most, slots[len(slots)-1]); p.grew > 0 {
			full = max(full, p.done/p.moments*taken/done)
		}
	}
	if f.Cores = full; full == 0 {
		f.Cores = most
	}
	a := Advise(f, step, jobs, slots)
	if a != nil && full == 0 {
		a.NeverFull, a.Needed = true, min(a.Needed, a.Upstreams)
	}
	return a
}
