package quality

import (
	"time"

	"example.org/pilotfish/internal/pool"
)

// fleetOf counts the upstreams that get new jobs, and their cores. If an upstream's number of cores
// is unknown, the mean of the others counts.
func fleetOf(states []pool.State) (f Fleet) {
	known := 0
	for i := range states {
		s := &states[i]
		if s.IsLeaving() {
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

// saturated is the share of busy cores above which a fleet can be too small for its jobs. Below it, jobs wait for
// another reason.
const saturated = 0.8

// demand returns how many cores the jobs of all sidecars need, and how many jobs are completed per
// second, as far as the upstreams report. At an upstream that does not report busy cores, each known job
// counts as one.
//
// The number of busy cores cannot exceed that of cores, so it does not show how much more work arrives than is
// completed. The jobs do: if the time to first byte rises by 0.1 s per second, 10 % more work arrives; if a tenth of
// the jobs is lost, nine tenths of the work that arrived was completed.
func (m *Machine) demand(now time.Duration, states []pool.State) (cores, jobsPerSecond float64) {
	of := 0.0
	for i := range states {
		s := &states[i]
		if s.IsLeaving() || s.Cores == 0 {
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
	covered := min(now, time.Minute-step+now%step) // the current step is not over yet
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
