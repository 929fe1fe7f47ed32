package quality

import (
	"math"
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

// Load is what a fleet was asked to do, in steps of equal length: how many jobs came in
// each, and how many cores they needed in the mean, which may be more than there were.
type Load struct {
	Step        time.Duration
	Jobs, Cores []float64
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
}

// maxUpstreams is the most that is advised.
const maxUpstreams = 1_000_000

// Advise says what a fleet needs for a load like the one that was; nil without jobs or cores.
func Advise(l Load, f Fleet) *Advice {
	jobs, cores := sum(l.Jobs), sum(l.Cores)
	if f.Upstreams < 1 || !(f.Cores > 0) || !(jobs > 0) || !(cores > 0) {
		return nil
	}
	a := &Advice{
		Fleet: f, CoveredSeconds: float64(len(l.Jobs)) * l.Step.Seconds(),
		CoreSecondsPerJob: cores * l.Step.Seconds() / jobs,
	}
	a.JobsPerSecond = f.Cores / a.CoreSecondsPerJob
	busiest := 0.0                                             // cores
	width := min(max(1, int(time.Minute/l.Step)), len(l.Jobs)) // a shorter load is one minute
	for end := width; end <= len(l.Jobs); end++ {
		needed := sum(l.Cores[end-width:end]) / float64(width)
		a.Full = needed / f.Cores
		busiest = max(busiest, needed)
	}
	a.FullBusiest = busiest / f.Cores
	a.Needed = int(min(max(1, math.Ceil(withRoom(busiest)*float64(f.Upstreams)/f.Cores)), maxUpstreams))
	return a
}

// room is how many standard deviations of the number of jobs a fleet must have left:
// 99 of 100 jobs then find a core free.
const room = 2.33

// withRoom is how many cores a fleet needs so that hardly a job waits, if busy cores are
// busy in the mean. By chance the number of jobs at one time varies by its square root.
func withRoom(busy float64) float64 { return busy + room*math.Sqrt(busy) }

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

// Advice says what the upstreams need, by the last hour; nil while that is not known.
func (m *Machine) Advice(now time.Time, states []pool.State) *Advice {
	points := m.Points(now)
	l := Load{Step: step}
	for i := range points {
		p := &points[i]
		l.Cores = append(l.Cores, p.cores/p.looks)
		l.Jobs = append(l.Jobs, p.rate/p.looks*step.Seconds())
	}
	return Advise(l, fleetOf(states))
}

// fleetOf is the upstreams that take new jobs. One that does not report its cores counts
// as having as many as the others.
func fleetOf(states []pool.State) (f Fleet) {
	known := 0
	for i := range states {
		s := &states[i]
		if s.Draining || s.Drained {
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

// demand is how many cores the jobs of all sidecars need, and how many jobs end each
// second, as far as the upstreams report.
//
// Busy cores cannot show that more work comes than is done. What submitters see can:
// where the time to first byte rises by a tenth of a second each second, a tenth more
// comes; where a tenth of the jobs is lost, what was done is nine tenths of what came.
func (m *Machine) demand(now time.Duration, states []pool.State) (cores, jobsPerSecond float64) {
	of := 0.0
	for i := range states {
		s := &states[i]
		if s.Draining || s.Drained || s.Cores == 0 || s.CoresBusy < 0 {
			continue
		}
		busy := min(s.CoresBusy, float64(s.Cores))
		cores, of = cores+busy, of+float64(s.Cores)
		jobsPerSecond += s.Rate * busy / float64(s.Cores)
	}
	minute := m.fleet.tally(now)
	bad, jobs := minute.bad()
	if jobsPerSecond == 0 { // the upstreams do not report it: this sidecar's own
		jobsPerSecond = float64(jobs) / time.Minute.Seconds()
	}
	more := 1.0
	switch t := m.fleet.trend; {
	case cores < saturated*of:
	case m.fleet.mode == Growing && t.Span > 0:
		more = max(1, 1+t.Rise()/t.Span)
	case m.fleet.mode == Losing && jobs > bad:
		more = float64(jobs) / float64(jobs-bad)
	}
	return cores * more, jobsPerSecond * more
}
