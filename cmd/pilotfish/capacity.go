package main

import (
	"time"

	"example.org/pilotfish/internal/capacity"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
)

// fleetOf is the upstreams that take new jobs. One that does not tell its cores counts
// as having as many as the others.
func fleetOf(states []pool.State) (f capacity.Fleet) {
	told := 0
	for i := range states {
		s := &states[i]
		if s.Draining || s.Drained {
			continue
		}
		f.Upstreams++
		if s.Cores > 0 {
			told++
			f.Cores += float64(s.Cores)
		}
	}
	if told > 0 {
		f.Cores *= float64(f.Upstreams) / float64(told)
	}
	return f
}

// saturated is the least share of busy cores at which a fleet may be too small. Below
// it, jobs wait for another reason.
const saturated = 0.8

// demand is how many cores the jobs of all sidecars need, and how many jobs end each
// second, as far as the upstreams tell.
//
// Busy cores cannot show that more work comes than is done. What submitters see can:
// where the time to first byte rises by a tenth of a second each second, a tenth more
// comes; where a tenth of the jobs is lost, what was done is nine tenths of what came.
// jobs is how many ended in the last minute, and lost how many of them were lost.
func demand(states []pool.State, status quality.Status, jobs, lost uint64) (cores, jobsPerSecond float64) {
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
	if jobsPerSecond == 0 { // the upstreams do not tell: this sidecar's own
		jobsPerSecond = float64(jobs) / time.Minute.Seconds()
	}
	more := 1.0
	if t := status.Trend; status.Mode == quality.Growing && t.Span > 0 {
		more = max(more, 1+t.Rise()/t.Span)
	}
	if status.Mode == quality.Losing && jobs > lost {
		more = max(more, float64(jobs)/float64(jobs-lost))
	}
	if cores < saturated*of {
		more = 1
	}
	return cores * more, jobsPerSecond * more
}

func (s *served) demand(now time.Time, states []pool.State) (cores, jobsPerSecond float64) {
	s.mu.Lock()
	status := s.machine.Status("")
	jobs, lost := s.machine.Minute(now, "")
	s.mu.Unlock()
	return demand(states, status, jobs, lost)
}

// Capacity implements admin.Console.
func (c *console) Capacity() (capacity.Advice, error) {
	return c.capacity(c.side.balancer.States())
}

func (c *console) capacity(states []pool.State) (capacity.Advice, error) {
	c.mu.Lock()
	load, _ := c.load.Load()
	unloaded := c.history.Unloaded()
	c.mu.Unlock()
	bound := capacity.Bound{
		FirstByte: c.side.current.Load().cfg.Quality.FirstByte,
		Unloaded:  time.Duration(unloaded * float64(time.Second)),
	}
	return capacity.Advise(load, fleetOf(states), bound)
}
