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
	bound     time.Duration // on firstByte; 0 is not known
	wait      time.Duration // in queues that give the job up after its patience
	patience  time.Duration
	jobs      float64 // how many it stands for
}

// from is x with these times.
func (x sample) from(arrived, firstByte time.Duration) sample {
	x.arrived, x.firstByte = arrived, firstByte
	return x
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
	latest    [2]rise // of the times to first byte and of the waits, where they rise in a straight line
}

// rise is how fast times rise to their shortest bound, by the later half of the samples, or by their last quarter if it is
// steeper: all samples may reach back to before the rise.
type rise struct{ bound, level, slope float64 }

// Rise is by how much the time to first byte rose over all the jobs of the trend, in seconds.
func (t Trend) Rise() float64 { return t.Slope * t.Jobs }

const (
	// farthest is how far ahead a forecast is made, in seconds.
	farthest = 3600
	// straight is how many times as steep as all samples the later half may be: a rise that has just begun becomes steeper.
	straight = 1.1
)

// deadline is after how many more jobs, and in how many seconds, the first one is lost because its time to first
// byte, or its wait, reaches its bound; ok is false if that is not foreseen. The latest job that the trend knows
// arrived as long ago as its first byte took, and the first one to be lost is lost when it has been here for its bound.
func (t *Trend) deadline() (jobs, after float64, ok bool) {
	for _, b := range t.latest {
		if b.bound <= 0 || b.slope <= 0 {
			continue
		}
		n := max(0, b.bound-b.level) / b.slope
		in := max(0, n*t.Span/max(t.Jobs-1, 1)+b.bound-t.latest[0].level)
		if in <= farthest && (!ok || in < after) {
			jobs, after, ok = n, in, true
		}
	}
	return jobs, after, ok
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
	points, waits, patience := make([]spot, len(recent)), make([]spot, len(recent)), 0.0
	for i, s := range recent {
		lower(&result.Bound, s.bound)
		lower(&patience, s.patience)
		points[i] = spot{result.Jobs + s.jobs/2, s.firstByte.Seconds()}
		waits[i] = spot{points[i].job, s.wait.Seconds()}
		result.Jobs += s.jobs
	}
	result.certainty = mannKendall(points)
	result.Slope, result.Level = theilSen(points)
	half := len(points) / 2
	if by := riseTo(result.Bound, points[half:]); by.slope <= straight*result.Slope && result.certainty >= doubtful {
		result.latest = [2]rise{by, riseTo(patience, waits[half:])}
	}
	return result, true
}

func riseTo(bound float64, points []spot) rise {
	slope, level := theilSen(points)
	latest, _ := theilSen(points[len(points)/2:])
	return rise{bound, level, max(slope, latest)}
}

// lower makes a bound the shorter of two, of which 0 is not known.
func lower(bound *float64, other time.Duration) {
	if s := other.Seconds(); *bound == 0 || s > 0 && s < *bound {
		*bound = s
	}
}

// spot is a sample: job is the number of the middle one of the jobs that it stands for.
type spot struct{ job, seconds float64 }

// mannKendall says how certain it is that points rise, in standard deviations of what
// chance alone would do. It looks at the order of the values only, so that a long job
// weighs no more than any other.
func mannKendall(points []spot) float64 {
	s := 0
	for i, p := range points {
		for _, later := range points[i+1:] {
			s += cmp.Compare(later.seconds, p.seconds)
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
			slopes = append(slopes, (later.seconds-p.seconds)/(later.job-p.job))
		}
	}
	slope = median(slopes)
	heights := make([]float64, len(points))
	last := points[len(points)-1].job
	for i, p := range points {
		heights[i] = p.seconds + slope*(last-p.job)
	}
	return slope, median(heights)
}

// median sorts the values and returns the middle one.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
