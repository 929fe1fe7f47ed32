package quality

import (
	"math"
	"sort"
	"time"

	"example.org/pilotfish/internal/pool"
)

// Work is counted in cores: a job with three core-seconds needs one core in each of three
// seconds. The advice ignores caches and an uneven distribution of jobs: it is
// for a balanced fleet.

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
	// Full is the cores that the jobs of the last minute needed, divided by the fleet's cores.
	// FullBusiest is the same for the busiest minute. Above 1, the fleet is too small.
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

	busiest, jobs float64 // cores in the busiest minute, and jobs in all
	costs         *costs  // nil without a machine
}

// Plan sets ForTarget, CostPerJob and ProjectCosts, if the settings ask for them.
func (a *Advice) Plan(s Settings) {
	if t := s.Target.WaitP95; t > 0 && !a.NeverFull {
		low := int(a.busiest*float64(a.Upstreams)/a.Cores) + 1 // with fewer, the queue grows
		n := low + sort.Search(max(0, a.Needed-low), func(i int) bool {
			return waitsLonger(float64(low+i)*a.Cores/float64(a.Upstreams), a.busiest, a.CoreSecondsPerJob, t.Seconds()) <= 0.05
		})
		a.ForTarget = &n
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

// maxUpstreams bounds the advice.
const maxUpstreams = 1_000_000

// room is the number of standard deviations of free cores with which 99 of 100 jobs find a free
// core. The standard deviation of the busy cores is the square root of their mean.
const room = 2.33

// Advise returns what a fleet needs for the observed load: the jobs of each step of equal
// length, and the mean number of cores that they needed, which can exceed the fleet's.
// It returns nil without jobs or cores.
func Advise(f Fleet, step time.Duration, jobs, cores []float64) *Advice {
	came, work := sum(jobs), sum(cores)
	if f.Upstreams < 1 || !(f.Cores > 0) || !(came > 0) || !(work > 0) {
		return nil
	}
	a := &Advice{Fleet: f, CoveredSeconds: float64(len(jobs)) * step.Seconds(), CoreSecondsPerJob: work * step.Seconds() / came, jobs: came}
	a.JobsPerSecond = f.Cores / a.CoreSecondsPerJob
	busiest := 0.0                                         // cores
	width := min(max(1, int(time.Minute/step)), len(jobs)) // a load shorter than a minute counts as one
	for end := width; end <= len(jobs); end++ {
		needed := sum(cores[end-width:end]) / float64(width)
		a.Full = needed / f.Cores
		busiest = max(busiest, needed)
	}
	a.busiest, a.FullBusiest = busiest, busiest/f.Cores
	free := room * math.Sqrt(busiest)
	a.Needed = int(min(max(1, math.Ceil((busiest+free)*float64(f.Upstreams)/f.Cores)), maxUpstreams))
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
			jobs = append(jobs, p.rate/p.looks*step.Seconds())
			cores = append(cores, p.cores/p.looks)
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
// By Little's law, jobs at upstreams / jobs per second is the mean time of a job there. While the queue does not grow, that is
// what a job needs. While it grows, all slots are taken: their number is the jobs completed per second times that time. If the queue
// never grew, the upstreams have at least as many slots as were ever taken.
func adviceBySlots(f Fleet, points []Point) *Advice {
	taken, done := 0.0, 0.0
	for _, p := range points {
		if p.grew == 0 {
			taken, done = taken+p.own/p.looks, done+p.done/p.looks
		}
	}
	if !(done > 0) {
		return nil
	}
	var jobs, slots []float64
	most, full := 0.0, 0.0
	for _, p := range points {
		arrive := p.rate / p.looks
		jobs, slots = append(jobs, arrive*step.Seconds()), append(slots, arrive*taken/done)
		if most = max(most, slots[len(slots)-1]); p.grew > 0 {
			full = max(full, p.done/p.looks*taken/done)
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

// fleetOf counts the upstreams that get new jobs, and their cores. If an upstream's number of cores
// is unknown, the mean of the others counts.
func fleetOf(states []pool.State) (f Fleet) {
	known := 0
	for i := range states {
		s := &states[i]
		if s.Leaves() {
			continue
		}
		f.Upstreams++
		if s.Cores > 0 {
			known++
			f.Cores += float64(s.Cores)
		}
	}
	f.Cores *= float64(f.Upstreams) / float64(max(known, 1))
	return f
}

// saturated is the share of busy cores from which a fleet counts as too small. Below
// it, jobs wait for another reason.
const saturated = 0.8

// demand returns how many cores the jobs of all sidecars need, and how many jobs are completed per
// second, as far as the upstreams report. At an upstream that does not report busy cores, each known job
// counts as one.
//
// Busy cores cannot show that more work arrives than is completed, but the jobs can: if the time to first
// byte rises by 0.1 s per second, 10 % more arrives; if a tenth of the jobs is lost, nine tenths of
// the work that arrived was completed.
func (m *Machine) demand(now time.Duration, states []pool.State) (cores, jobsPerSecond float64) {
	of := 0.0
	for i := range states {
		s := &states[i]
		if s.Leaves() || s.Cores == 0 {
			continue
		}
		busy := s.CoresBusy
		if busy < 0 {
			busy = s.Jobs
		}
		busy = min(busy, float64(s.Cores))
		cores, of = cores+busy, of+float64(s.Cores)
		jobsPerSecond += s.Rate * busy / float64(s.Cores)
	}
	minute := m.fleet.tally(now)
	bad, jobs := minute.bad()
	if jobsPerSecond == 0 { // the upstreams do not report it
		jobsPerSecond = m.completions(now)
	}
	more := 1.0
	switch t := m.fleet.Trend; {
	case cores < saturated*of:
	case m.fleet.Mode == QueueGrows && t.Span > 0:
		more = max(1, 1+t.Rise()/t.Span)
	case m.fleet.Mode == JobsFail && jobs > bad:
		more = float64(jobs) / float64(jobs-bad)
	}
	return cores * more, jobsPerSecond * more
}

// completions returns how many of this sidecar's jobs are completed per second.
func (m *Machine) completions(now time.Duration) float64 {
	covered := min(now, time.Minute-step+now%step) // the present step has only begun
	return float64(m.fleet.tally(now).results[complete]) / max(covered.Seconds(), 1)
}

// BacklogImbalance compares the longest backlog of an upstream that reports with the mean of all: the stalled joblets
// beyond the mean, divided by the mean. 0 is an even fleet. A mean of less than one joblet counts as one, so that a single
// joblet is no imbalance. ok is false without reports.
//
// Source: the blog, "backlog imbalance".
func (v *View) BacklogImbalance() (imbalance float64, ok bool) {
	sum, n, most := 0.0, 0.0, 0.0
	for i := range v.Upstreams {
		if u := &v.Upstreams[i]; u.ReportAge >= 0 {
			sum, n, most = sum+u.Stalled, n+1, max(most, u.Stalled)
		}
	}
	if n == 0 {
		return 0, false
	}
	return (most - sum/n) / max(sum/n, 1), true
}
