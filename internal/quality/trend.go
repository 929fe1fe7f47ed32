package quality

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const (
	// samples is how many jobs a trend is judged by at most: at high rates, those of a minute.
	samples = 48
	// leastSamples is how few say nothing.
	leastSamples = 8
	// maxAge is after which time a job says nothing of now.
	maxAge = 5 * time.Minute
)

// sample is one job of a trend. Instants are since the machine's start.
type sample struct {
	arrived   time.Duration
	firstByte time.Duration // from there
	bound     time.Duration // 0 is not known
	jobs      float64       // how many it stands for
}

// heard is when the first byte came.
func (s sample) heard() time.Duration { return s.arrived + s.firstByte }

// trend follows how the times to first byte change from job to job.
type trend struct {
	ring  []sample // in the order of their first bytes
	each  float64  // one of each jobs becomes a sample
	since float64  // jobs since the last sample
}

// pace makes the samples cover a minute with so many jobs.
func (t *trend) pace(jobs uint64) { t.each = float64(jobs) / samples }

// add takes in a job whose response has begun.
func (t *trend) add(s sample) {
	if t.since++; t.since < t.each {
		return
	}
	s.jobs = max(t.each, 1)
	t.since -= s.jobs
	t.ring = append(t.ring, s)
	t.ring = slices.Delete(t.ring, 0, max(0, len(t.ring)-samples))
}

// restart forgets the jobs whose first byte came before an instant.
func (t *trend) restart(at time.Duration) {
	t.ring = slices.DeleteFunc(t.ring, func(s sample) bool { return s.heard() < at })
}

// Trend says how the times to first byte change from job to job.
type Trend struct {
	// Jobs is how many jobs it is judged by, and Span the time in which they arrived,
	// in seconds.
	Jobs float64 `json:"jobs"`
	Span float64 `json:"span_seconds"`
	// Level is the median time to first byte of the latest of them, in seconds.
	Level float64 `json:"first_byte_seconds"`
	// Slope is by how many seconds it rises from one job to the next.
	Slope float64 `json:"slope_seconds_per_job"`
	// Bound is the shortest time that one of them waits for its first byte, in seconds;
	// 0 is not known.
	Bound float64 `json:"bound_seconds,omitempty"`

	certainty float64 // of a rise: Mann and Kendall's Z
}

// Rise is by how much the time to first byte rose over all the jobs of the trend, in seconds.
func (t Trend) Rise() float64 { return t.Slope * t.Jobs }

// deadline is in how many jobs, and how many seconds, the time to first byte will
// reach the shortest bound of a job; ok is false if it will not.
func (t *Trend) deadline() (jobs, after float64, ok bool) {
	if t.Bound <= 0 || t.Slope <= 0 {
		return 0, 0, false
	}
	jobs = max(0, t.Bound-t.Level) / t.Slope
	return jobs, jobs * t.Span / max(t.Jobs-1, 1), true
}

// at judges the jobs as they are known at an instant, in the order of their arrival; ok is
// false when they are too few.
func (t *trend) at(now time.Duration) (Trend, bool) {
	recent := slices.DeleteFunc(slices.Clone(t.ring), func(s sample) bool { return s.heard() < now-maxAge })
	if len(recent) < leastSamples {
		return Trend{}, false
	}
	slices.SortStableFunc(recent, func(a, b sample) int { return cmp.Compare(a.arrived, b.arrived) })

	result := Trend{Span: (recent[len(recent)-1].arrived - recent[0].arrived).Seconds()}
	points := make([]spot, len(recent))
	for i, s := range recent {
		if bound := s.bound.Seconds(); result.Bound == 0 || bound > 0 && bound < result.Bound {
			result.Bound = bound
		}
		points[i] = spot{job: result.Jobs + s.jobs/2, firstByte: s.firstByte.Seconds()}
		result.Jobs += s.jobs
	}
	result.certainty = mannKendall(points)
	result.Slope, result.Level = theilSen(points)
	return result, true
}

// spot is a sample: job is the number of the middle one of the jobs that it stands for.
type spot struct{ job, firstByte float64 }

// mannKendall says how certain it is that points rise, in standard deviations of what
// chance alone would do. It looks at the order of the values only, so that a long job
// weighs no more than any other.
func mannKendall(points []spot) float64 {
	s := 0
	for i, p := range points {
		for _, later := range points[i+1:] {
			s += cmp.Compare(later.firstByte, p.firstByte)
		}
	}
	n := float64(len(points))
	deviation := math.Sqrt(n * (n - 1) * (2*n + 5) / 18)
	return float64(s-cmp.Compare(s, 0)) / deviation
}

// theilSen is the median slope between any two points, and the height of that line at
// the last of them.
func theilSen(points []spot) (slope, level float64) {
	slopes := make([]float64, 0, len(points)*(len(points)-1)/2)
	for i, p := range points {
		for _, later := range points[i+1:] {
			slopes = append(slopes, (later.firstByte-p.firstByte)/(later.job-p.job))
		}
	}
	slope = median(slopes)
	heights := make([]float64, len(points))
	last := points[len(points)-1].job
	for i, p := range points {
		heights[i] = p.firstByte + slope*(last-p.job)
	}
	return slope, median(heights)
}

// median sorts the values and returns the middle one.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
