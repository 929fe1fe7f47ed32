package scenario

import (
	"time"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/dispatch"
)

// defaultSample is the time between two samples of the fleet.
const defaultSample = 10 * time.Second

// defaultFleet is the thesis's.
func defaultFleet() fleet { return fleet{Upstreams: 14, Cores: 16, Cache: 64 << 30} }

// defaultSidecars is the thesis's one scheduler, with the sidecar's own retries.
func defaultSidecars() sidecars {
	return sidecars{
		Count:          1,
		Interval:       5 * time.Second,
		Hints:          new(bool),
		Attempts:       3,
		ConnectTimeout: patience(time.Second),
		Budget:         dispatch.DefaultRetry().Budget,
		Breaker:        breaker.Default(),
		Wait:           240 * time.Second,
	}
}

// over takes from under what f leaves open.
func (f *fleet) over(under fleet) {
	orDefault(&f.Upstreams, under.Upstreams)
	orDefault(&f.Cores, under.Cores)
	orDefault(&f.Cache, under.Cache)
	orDefault(&f.Backlog, under.Backlog)
	p := f.Preemption
	if p == nil {
		f.Preemption = under.Preemption
		return
	}
	orDefault(&p.Upstreams, min(10, f.Upstreams))
	orDefault(&p.Life, 24*time.Hour)
	orDefault(&p.Notice, 30*time.Second)
	orDefault(&p.AwayMin, 5*time.Minute)
	orDefault(&p.AwayMax, max(10*time.Minute, p.AwayMin))
	orDefault(&p.Discovery, 2*time.Second)
}

// over takes from under what s leaves open.
func (s *sidecars) over(under sidecars) {
	orDefault(&s.Count, under.Count)
	orDefault(&s.Interval, under.Interval)
	orDefault(&s.Hints, under.Hints)
	orDefault(&s.Attempts, under.Attempts)
	orDefault(&s.ConnectTimeout, under.ConnectTimeout)
	orDefault(&s.Budget, under.Budget)
	orDefault(&s.Breaker.Failures, under.Breaker.Failures)
	orDefault(&s.Breaker.Open, under.Breaker.Open)
	orDefault(&s.Breaker.OpenMax, under.Breaker.OpenMax)
	orDefault(&s.Wait, under.Wait)
	orDefault(&s.Freeze, under.Freeze)
}
