package quality

import (
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// ring keeps a value for each of the last len(ring) steps.
type ring[T any] []slot[T]

type slot[T any] struct {
	number int64 // of the step since the machine's start
	of     T
}

// at returns the value of the step that contains an instant, or the value of the latest step if that is later.
func (r ring[T]) at(now time.Duration) *T {
	number := max(0, int64(now/step))
	s := &r[number%int64(len(r))]
	if number > s.number {
		*s = slot[T]{number: number}
	}
	return &s.of
}

// last calls do for the values of the last n steps until now, the oldest first.
func (r ring[T]) last(now time.Duration, n int64, do func(*T)) {
	present := int64(now / step)
	for number := max(0, present-n+1); number <= present; number++ {
		if s := &r[number%int64(len(r))]; s.number == number {
			do(&s.of)
		}
	}
}

// period is one step of the last hour.
type period struct {
	jobs  [selection.Priorities]ended
	point Point
}

// Moment is the state of the upstreams and the queue at one instant.
type Moment struct {
	Upstreams []pool.State
	// InFlight is the number of jobs at upstreams, Waiting the number in the sidecar's queue.
	InFlight, Waiting int
}

// load is the number of cores that jobs need now, and the number of cores; 0 is unknown.
type load struct{ needed, cores float64 }

// idle reports whether enough cores are free that no queue can grow.
func (l load) idle() bool { return l.cores > 0 && l.needed < saturated*l.cores }

func loadOf(s *pool.State) load {
	needed := s.CoresBusy
	if needed < 0 || s.Wait != 0 {
		needed = max(needed, s.Jobs)
	}
	return load{needed, float64(s.Cores)}
}

// load returns the load of all upstreams that get jobs. It is unknown if one upstream's is, or if jobs wait in the sidecar.
func (o *Moment) load() (all load) {
	for i := range o.Upstreams {
		s := &o.Upstreams[i]
		if s.Draining || s.Drained || !s.DownSince.IsZero() {
			continue
		}
		l := loadOf(s)
		if l.cores == 0 || o.Waiting > 0 {
			return load{}
		}
		all.needed, all.cores = all.needed+l.needed, all.cores+l.cores
	}
	return all
}

// Point is the fleet at the end of a step of ten seconds.
type Point struct {
	// At is the instant, in seconds since 1970.
	At int64 `json:"at"`
	// Jobs is the number of ended jobs per second, Failed those with a status of 500
	// or more, Lost those with an incomplete response or none. FirstByteP50 and FirstByteP99
	// are times to first byte. All are over the preceding minute.
	Jobs         float64 `json:"jobs_per_second"`
	Failed       float64 `json:"failed_per_second"`
	Lost         float64 `json:"lost_per_second"`
	FirstByteP50 float64 `json:"first_byte_p50_seconds"`
	FirstByteP99 float64 `json:"first_byte_p99_seconds"`
	// Found is the hit rate of that minute's jobs, and ShadowFound the hit rate of the shadow policy's choices; -1 without
	// such jobs.
	Found       float64 `json:"found_share"`
	ShadowFound float64 `json:"shadow_found_share"`
	// InFlight is the number of jobs at upstreams at that instant, Waiting the number in the queue.
	InFlight int `json:"in_flight"`
	Waiting  int `json:"waiting"`

	// The number of calls of observe, and the sums of needed cores and jobs per second.
	moments, cores, rate float64
	// The sums of this sidecar's jobs at upstreams and of its completed jobs per second, and the number of calls during
	// which the queue grew.
	own, done, grew float64
}

// observe records a moment. The first call in a step completes the step before.
func (m *Machine) observe(now time.Duration, o *Moment) {
	p := &m.hour.at(now).point
	if p.moments == 0 && now >= step {
		end := now / step * step
		minute := m.window(end-1, spans[0])
		f, covered := &minute.All, max(minute.Covered, 1)
		before := &m.hour.at(end - 1).point
		before.At = m.start.Add(end).Unix()
		before.Jobs, before.Failed, before.Lost = float64(f.Jobs)/covered, float64(f.Failed)/covered, float64(f.Partial+f.Absent)/covered
		before.FirstByteP50, before.FirstByteP99 = f.FirstByte.P50, f.FirstByte.P99
		before.Found, before.ShadowFound = share(f.Data.Found, f.Data.Jobs), share(f.Data.ShadowFound, f.Data.Shadowed)
	}
	cores, rate := m.demand(now, o.Upstreams)
	p.moments, p.cores, p.rate = p.moments+1, p.cores+cores, p.rate+rate
	p.own, p.done = p.own+float64(o.InFlight), p.done+m.completions(now)
	if m.fleet.Mode == QueueGrows {
		p.grew++
	}
	p.InFlight, p.Waiting = o.InFlight, o.Waiting
}

// Points returns the completed steps of the last hour, the oldest first.
func (m *Machine) Points(now time.Time) []Point {
	points := make([]Point, 0, steps)
	m.hour.last(now.Sub(m.start), steps, func(s *period) {
		if s.point.At != 0 && s.point.moments > 0 {
			points = append(points, s.point)
		}
	})
	return points
}
