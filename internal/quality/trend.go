package quality

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const (
	// samples is the maximum number of jobs in a trend; at high rates they cover a minute.
	samples = 48
	// leastSamples is the minimum number of jobs in a trend.
	leastSamples = 8
	// maxAge is the age after which a job is too old for a trend.
	maxAge = 5 * time.Minute
)

// sample is one job of a trend.
type sample struct {
	arrived   time.Duration // since the start of the Machine
	firstByte time.Duration // time from the arrival to the first byte
	bound     time.Duration // timeout of firstByte; 0 is unknown
	wait      time.Duration // time in queues, which abort the job when it reaches patience
	patience  time.Duration
	jobs      float64 // number of jobs that the sample represents
}

// from returns x with these times.
func (x sample) from(arrived, firstByte time.Duration) sample {
	x.arrived, x.firstByte = arrived, firstByte
	return x
}

// began is when the first byte arrived.
func (s sample) began() time.Duration { return s.arrived + s.firstByte }

// trend collects times to first byte and determines how they change from job to job.
type trend struct {
	ring  []sample // in the order of their first bytes
	each  float64  // every each-th job becomes a sample
	since float64  // jobs since the last sample
}

// pace sets the sampling rate so that the samples cover a minute with this many jobs.
func (t *trend) pace(jobs uint64) { t.each = float64(jobs) / samples }

// add counts a job whose response has started.
func (t *trend) add(s sample) {
	if t.since++; t.since < t.each {
		return
	}
	s.jobs = max(t.each, 1)
	t.since -= s.jobs
	t.ring = append(t.ring, s)
	t.ring = slices.Delete(t.ring, 0, max(0, len(t.ring)-samples))
}

// restart forgets the jobs whose first byte arrived before an instant.
func (t *trend) restart(at time.Duration) {
	t.ring = slices.DeleteFunc(t.ring, func(s sample) bool { return s.began() < at })
}

// Trend is how the times to first byte change from job to job.
type Trend struct {
	// Jobs is the number of jobs in the trend, and Span the time in which they arrived,
	// in seconds.
	Jobs float64 `json:"jobs"`
	Span float64 `json:"span_seconds"`
	// Level is the median time to first byte at the end of the trend, in seconds.
	Level float64 `json:"first_byte_seconds"`
	// Slope is the rise of the time to first byte from one job to the next, in seconds.
	Slope float64 `json:"slope_seconds_per_job"`
	// Bound is the shortest timeout of a job's first byte, in seconds; 0 is unknown.
	Bound float64 `json:"bound_seconds,omitempty"`

	certainty float64 // of a rise: Mann and Kendall's Z
	latest    [2]rise // the latest rise of the times to first byte and of the waits; zero unless they rise linearly
}

// rise is a linear rise of times towards their shortest timeout. It is fitted to the later half of the samples, or to the
// last quarter if that is steeper, because the earlier samples can be older than the rise.
type rise struct{ bound, level, slope float64 }

// Rise returns by how many seconds the time to first byte rises from the first to the last job of the trend.
func (t Trend) Rise() float64 { return t.Slope * t.Jobs }

const (
	// farthest is the horizon of the forecast, in seconds.
	farthest = 3600
	// straight is the maximum ratio of the slope of the later half of the samples to the slope of all samples. If it is
	// larger, the rise is still accelerating, and a linear forecast would be wrong.
	straight = 1.1
)

// deadline forecasts after how many more jobs, and in how many seconds, the first job's time to first byte or wait
// reaches its timeout; ok is false without a forecast. The trend's latest job arrived one time to first byte ago,
// and the first job to time out fails one timeout after its arrival.
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

// at returns the trend at an instant, with the jobs in the order of their arrival; ok is false if there are too few jobs.
func (t *trend) at(now time.Duration) (Trend, bool) {
	recent := slices.DeleteFunc(slices.Clone(t.ring), func(s sample) bool { return s.began() < now-maxAge })
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

// lower sets bound to the shorter of both; 0 is unknown.
func lower(bound *float64, other time.Duration) {
	if s := other.Seconds(); *bound == 0 || s > 0 && s < *bound {
		*bound = s
	}
}

// spot is a point of the trend. A sample represents several jobs; job is the number of the one in the middle.
type spot struct{ job, seconds float64 }

// mannKendall returns the certainty of a rise, in standard deviations of the test's statistic without a trend. It uses
// only the order of the values, so a single long job has no larger influence than others.
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

// theilSen returns the median slope between any two points, and the value of that line at
// the last point.
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

// median sorts the values and returns their median.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
