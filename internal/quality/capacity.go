package quality

import (
	"math"
	"sort"
	"time"

	"example.org/pilotfish/internal/pool"
)

// Work is in cores: a job that needs one core for three seconds needs one core in each of
// three seconds. The advice knows nothing of caches or of how evenly jobs are spread: it is
// what a fleet needs that is well balanced.

// Fleet is the upstreams.
type Fleet struct {
	// Upstreams is how many there are, and Cores how many cores they have together.
	Upstreams int     `json:"upstreams"`
	Cores     float64 `json:"cores"`
}

// Advice is what a fleet can do, what it does, and what it needs.
type Advice struct {
	Fleet
	// CoreSecondsPerJob is the work of a job in the mean, and JobsPerSecond how many the
	// fleet can do: its break point.
	CoreSecondsPerJob float64 `json:"core_seconds_per_job"`
	JobsPerSecond     float64 `json:"jobs_per_second"`
	// CoveredSeconds is how long the load is that this is judged by.
	CoveredSeconds float64 `json:"covered_seconds"`
	// Full is the cores that jobs needed in the last minute, over the fleet's, and
	// FullBusiest those of the busiest minute: above 1 the fleet is too small.
	Full        float64 `json:"full"`
	FullBusiest float64 `json:"full_in_busiest_minute"`
	// Needed is how many upstreams would serve every job of the busiest minute alike (mode 1).
	Needed int `json:"upstreams_needed"`
	// ForTarget is how many upstreams would keep quality.target in the busiest minute; absent without a target.
	ForTarget *int `json:"upstreams_for_target,omitempty"`
	// CostPerJob is what the upstreams cost while they were seen, divided by the jobs that they did; absent without
	// quality.upstream_price.
	CostPerJob *float64 `json:"cost_per_job,omitempty"`

	busiest, jobs float64 // cores in the busiest minute, and jobs in all
}

// Plan adds what the settings ask for.
func (a *Advice) Plan(s Settings) {
	if t := s.Target.WaitP95; t > 0 {
		low := int(a.busiest*float64(a.Upstreams)/a.Cores) + 1 // fewer never catch up
		n := low + sort.Search(max(0, a.Needed-low), func(i int) bool {
			return waitsLonger(float64(low+i)*a.Cores/float64(a.Upstreams), a.busiest, a.CoreSecondsPerJob, t.Seconds()) <= 0.05
		})
		a.ForTarget = &n
	}
	if s.UpstreamPrice > 0 {
		cost := s.UpstreamPrice * float64(a.Upstreams) * a.CoveredSeconds / time.Hour.Seconds() / a.jobs
		a.CostPerJob = &cost
	}
}

// waitsLonger is the share of jobs that wait longer than t seconds for one of so many cores, of which busy are busy in
// the mean, if jobs need so many seconds of one: an M/M/k queue, by the formula of Erlang C.
func waitsLonger(cores, busy, seconds, t float64) float64 {
	blocked := 1.0 // Erlang B
	for k := 1.0; k <= cores; k++ {
		blocked = busy * blocked / (k + busy*blocked)
	}
	waits := blocked / (1 - busy/cores*(1-blocked))
	return waits * math.Exp(-(cores-busy)*t/seconds)
}

// maxUpstreams is the most that is advised.
const maxUpstreams = 1_000_000

// room is how many standard deviations of the number of jobs at one time a fleet must have
// left: 99 of 100 jobs then find a core free. By chance that number varies by its square root.
const room = 2.33

// Advise says what a fleet needs for a load like the one that was. In steps of equal length,
// that is how many jobs came, and how many cores they needed in the mean, which may be more
// than there were. It returns nil without jobs or cores.
func Advise(f Fleet, step time.Duration, jobs, cores []float64) *Advice {
	came, work := sum(jobs), sum(cores)
	if f.Upstreams < 1 || !(f.Cores > 0) || !(came > 0) || !(work > 0) {
		return nil
	}
	a := &Advice{Fleet: f, CoveredSeconds: float64(len(jobs)) * step.Seconds(), CoreSecondsPerJob: work * step.Seconds() / came, jobs: came}
	a.JobsPerSecond = f.Cores / a.CoreSecondsPerJob
	busiest := 0.0                                         // cores
	width := min(max(1, int(time.Minute/step)), len(jobs)) // a shorter load is one minute
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

// advice says what the upstreams need, by the last hour; nil while that is not known.
func (m *Machine) advice(now time.Time, states []pool.State) *Advice {
	var jobs, cores []float64
	for _, p := range m.Points(now) {
		jobs = append(jobs, p.rate/p.looks*step.Seconds())
		cores = append(cores, p.cores/p.looks)
	}
	return Advise(fleetOf(states), step, jobs, cores)
}

// fleetOf is the upstreams that take new jobs. One that does not report its cores counts
// as having as many as the others.
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

// saturated is the least share of busy cores at which a fleet may be too small. Below
// it, jobs wait for another reason.
const saturated = 0.8

// demand is how many cores the jobs of all sidecars need, and how many jobs are completed each
// second, as far as the upstreams report. Of one that does not report busy cores, each job that is known to be there
// takes one.
//
// Busy cores cannot show that more work comes than is done. What submitters see can:
// where the time to first byte rises by a tenth of a second each second, a tenth more
// comes; where a tenth of the jobs is lost, what was done is nine tenths of what came.
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
	if jobsPerSecond == 0 { // the upstreams do not report it: this sidecar's own
		jobsPerSecond = float64(minute.results[complete]) / time.Minute.Seconds()
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
