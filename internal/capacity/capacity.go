// Package capacity says how much work a fleet of upstreams can do, how full it is, and
// how many upstreams it needs so that submitters are served well.
//
// Work is told in cores: a job that needs one core for three seconds needs one core in
// each of three seconds. What is left over when a fleet is full waits, and the wait is
// the work that is left over, divided by the cores. The package knows nothing of caches
// or of how evenly jobs are spread: it tells what a fleet needs that is well balanced.
package capacity

import (
	"errors"
	"math"
	"time"
)

// Fleet is the upstreams.
type Fleet struct {
	// Upstreams is how many there are, and Cores how many cores they have together.
	Upstreams int     `json:"upstreams"`
	Cores     float64 `json:"cores"`
}

// cores is how many cores a number of upstreams like the fleet's have.
func (f Fleet) cores(upstreams int) float64 {
	return f.Cores / float64(f.Upstreams) * float64(upstreams)
}

// Bound is how long submitters may wait.
type Bound struct {
	// FirstByte is the longest time to first byte in the worst moment, for the median
	// job. Unloaded is how long it takes without load, in which nobody waits.
	FirstByte, Unloaded time.Duration
}

// Fill is how full a fleet is for some time.
type Fill struct {
	// Seconds is when that time begins, from the start of the load.
	Seconds float64 `json:"from_second"`
	// JobsPerSecond is how many jobs came or ended each second, and Cores how many
	// cores they needed in the mean. Full is that over the fleet's: above 1 it is too
	// small.
	JobsPerSecond float64 `json:"jobs_per_second"`
	Cores         float64 `json:"cores_needed"`
	Full          float64 `json:"full"`
}

// Need is how many upstreams serve submitters in one way.
type Need struct {
	// Upstreams is how many it takes. Change is how many to add; a negative
	// number is how many may go.
	Upstreams int `json:"upstreams"`
	Change    int `json:"change"`
	// Full is how full they will be in the busiest minute.
	Full float64 `json:"full"`
	// FirstByteSeconds is the time to first byte of the median job in the worst moment.
	FirstByteSeconds float64 `json:"first_byte_seconds"`
}

// Advice is what a fleet can do, what it does, and what it needs.
type Advice struct {
	Fleet
	// CoreSecondsPerJob is the work of a job in the mean, and JobsPerSecond how many the
	// fleet can do: its break point.
	CoreSecondsPerJob float64 `json:"core_seconds_per_job"`
	JobsPerSecond     float64 `json:"jobs_per_second"`
	// CoveredSeconds is how long the load is that this is told by.
	CoveredSeconds float64 `json:"covered_seconds"`
	// Now is the last minute, and Busiest the busiest.
	Now     Fill `json:"now"`
	Busiest Fill `json:"busiest_minute"`
	// Flat is what serves every job alike (mode 1), and Bounded what lets times to first
	// byte grow for a while, up to BoundSeconds (mode 2). Bounded is absent where a job
	// takes longer than that even without load.
	Flat         Need    `json:"flat"`
	Bounded      *Need   `json:"bounded,omitempty"`
	BoundSeconds float64 `json:"bound_seconds"`
}

// maxUpstreams is the most that is advised.
const maxUpstreams = 1_000_000

// ErrUnknown: there is not enough to tell by.
var ErrUnknown = errors.New("too few jobs, or no upstream that tells its cores")

// Advise says what a fleet needs for a load like the one that was.
func Advise(l *Load, f Fleet, b Bound) (Advice, error) {
	minutes := l.minutes()
	jobs, cores := sum(l.jobs), sum(l.cores)
	if f.Upstreams < 1 || !(f.Cores > 0) || len(minutes) == 0 || !(jobs > 0) || !(cores > 0) {
		return Advice{}, ErrUnknown
	}
	a := Advice{
		Fleet: f, CoveredSeconds: float64(l.arrivals()) * l.step.Seconds(), BoundSeconds: b.FirstByte.Seconds(),
		CoreSecondsPerJob: cores * l.step.Seconds() / jobs,
		Now:               minutes[len(minutes)-1],
	}
	a.JobsPerSecond = f.Cores / a.CoreSecondsPerJob
	for _, m := range minutes {
		if m.Cores > a.Busiest.Cores {
			a.Busiest = m
		}
	}
	a.Now.Full, a.Busiest.Full = a.Now.Cores/f.Cores, a.Busiest.Cores/f.Cores
	need := func(enough func(cores float64) bool) Need {
		n := least(func(n int) bool { return enough(f.cores(n)) })
		return Need{
			Upstreams: n, Change: n - f.Upstreams, Full: a.Busiest.Cores / f.cores(n),
			FirstByteSeconds: b.Unloaded.Seconds() + l.wait(f.cores(n)),
		}
	}
	a.Flat = need(func(cores float64) bool { return cores >= withRoom(a.Busiest.Cores) })
	if b.Unloaded < b.FirstByte {
		bounded := need(func(cores float64) bool { return b.Unloaded.Seconds()+l.wait(cores) <= b.FirstByte.Seconds() })
		a.Bounded = &bounded
	}
	return a, nil
}

// room is how many standard deviations of the number of jobs a fleet must have left:
// 99 of 100 jobs then find a core free.
const room = 2.33

// withRoom is how many cores a fleet needs so that hardly a job waits, if busy cores are
// busy in the mean. By chance the number of jobs at one time varies by its square root.
func withRoom(busy float64) float64 { return busy + room*math.Sqrt(busy) }

// least is the least number of upstreams that is enough, from 1.
func least(enough func(n int) bool) int {
	high := 1
	for high < maxUpstreams && !enough(high) {
		high *= 2
	}
	low := high / 2 // is not enough, or 0
	for low+1 < high {
		if middle := (low + high) / 2; enough(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}
