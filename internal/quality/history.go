package quality

import (
	"maps"
	"slices"
	"time"
)

// How far apart points are, and how many are kept: an hour.
const (
	fleetStep    = 10 * time.Second
	fleetPoints  = 360
	upstreamStep = time.Minute
	upstreamSize = 60
)

// History is the last hour, point by point. It is not safe for concurrent use.
type History struct {
	points    []Point
	upstreams map[string][]float64
	sampled   time.Time // when the upstreams were last sampled
}

// Point is the fleet at one instant. Rates are for each second of the minute before.
type Point struct {
	At           time.Time
	Jobs, Lost   float64
	FirstByteP50 float64 // seconds
	FirstByteP99 float64
	InFlight     int // jobs at upstreams
	Waiting      int // jobs in the sidecar's queue
}

// Due reports whether it is time for the next point.
func (h *History) Due(now time.Time) bool {
	return len(h.points) == 0 || now.Sub(h.points[len(h.points)-1].At) >= fleetStep
}

// Add takes in a point and, every minute, the jobs at each upstream.
func (h *History) Add(p Point, jobs map[string]float64) {
	h.points = append(h.points, p)
	h.points = h.points[max(0, len(h.points)-fleetPoints):]
	if p.At.Sub(h.sampled) < upstreamStep {
		return
	}
	h.sampled = p.At
	before := h.upstreams
	h.upstreams = make(map[string][]float64, len(jobs))
	for address, n := range jobs {
		series := append(before[address], n)
		h.upstreams[address] = series[max(0, len(series)-upstreamSize):]
	}
}

// Unloaded is the median time to first byte as it is with little load, in seconds: that of
// the calmest tenth of the last hour. The first minute has few jobs, and counts only while
// there is no other.
func (h *History) Unloaded() (seconds float64) {
	const minute = int(time.Minute / fleetStep)
	var medians []float64
	for i, p := range h.points {
		if p.FirstByteP50 > 0 && (i >= minute || len(h.points) <= minute) {
			medians = append(medians, p.FirstByteP50)
		}
	}
	if len(medians) == 0 {
		return 0
	}
	slices.Sort(medians)
	return medians[(len(medians)-1)/10]
}

// Series is a history by columns, as charts want it.
type Series struct {
	// StepSeconds is the time from one point to the next, and At the instants of all
	// points, in seconds since 1970.
	StepSeconds float64 `json:"step_seconds"`
	At          []int64 `json:"at"`
	// Jobs is how many ended each second, and Lost those of them with a response in
	// part or none. FirstByteP50 and FirstByteP99 are times to first byte. All are over
	// the minute before the point.
	Jobs         []float64 `json:"jobs_per_second"`
	Lost         []float64 `json:"lost_per_second"`
	FirstByteP50 []float64 `json:"first_byte_p50_seconds"`
	FirstByteP99 []float64 `json:"first_byte_p99_seconds"`
	// InFlight is the jobs at upstreams at that instant, and Waiting those in the queue.
	InFlight []int `json:"in_flight"`
	Waiting  []int `json:"waiting"`
	// Upstreams are the jobs at each upstream, every UpstreamStepSeconds, the latest last.
	UpstreamStepSeconds float64              `json:"upstream_step_seconds"`
	Upstreams           map[string][]float64 `json:"upstreams"`
}

// Series returns what is kept. The points that an upstream has are those since it came.
func (h *History) Series() Series {
	s := Series{
		StepSeconds: fleetStep.Seconds(), UpstreamStepSeconds: upstreamStep.Seconds(),
		At: []int64{}, Jobs: []float64{}, Lost: []float64{}, FirstByteP50: []float64{}, FirstByteP99: []float64{}, InFlight: []int{}, Waiting: []int{},
		Upstreams: maps.Clone(h.upstreams),
	}
	for _, p := range h.points {
		s.At = append(s.At, p.At.Unix())
		s.Jobs = append(s.Jobs, p.Jobs)
		s.Lost = append(s.Lost, p.Lost)
		s.FirstByteP50 = append(s.FirstByteP50, p.FirstByteP50)
		s.FirstByteP99 = append(s.FirstByteP99, p.FirstByteP99)
		s.InFlight = append(s.InFlight, p.InFlight)
		s.Waiting = append(s.Waiting, p.Waiting)
	}
	for address, series := range s.Upstreams {
		s.Upstreams[address] = slices.Clone(series)
	}
	return s
}
