package quality

import (
	"math"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

// The last hour is kept in steps of ten seconds.
const (
	step  = 10 * time.Second
	steps = int64(time.Hour / step)
)

// spans are the windows, in steps: 1, 5 and 60 minutes.
var spans = [...]int64{6, 30, steps}

// Window is the key figures of the jobs that ended in some time until now.
type Window struct {
	// Seconds is how long the window is.
	Seconds float64 `json:"seconds"`
	// Covered is how much of that the figures are of: the present step has only begun,
	// or the sidecar is younger.
	Covered float64 `json:"covered_seconds"`
	// High, Low and All are the figures of the jobs of each priority, and of both.
	High Figures `json:"high"`
	Low  Figures `json:"low"`
	All  Figures `json:"all"`
}

// Figures are the key figures of the jobs of one window and one priority.
type Figures struct {
	// Jobs is how many ended: Complete with a whole response, Failed with a whole response of
	// status 500 or more, Partial with one that was cut short, Absent with none. Those refused
	// as invalid or whose submitter left are left out, and so are the Limited, which were
	// refused because their project was at its limit.
	Jobs     uint64 `json:"jobs"`
	Complete uint64 `json:"complete"`
	Failed   uint64 `json:"failed"`
	Partial  uint64 `json:"partial"`
	Absent   uint64 `json:"absent"`
	Limited  uint64 `json:"limited"`
	// FirstByte is of all jobs with a response, LastByte of the whole responses, in seconds.
	FirstByte Quantiles `json:"first_byte_seconds"`
	LastByte  Quantiles `json:"last_byte_seconds"`
}

// result is what a job counts as.
type result uint8

const (
	complete  result = iota // a whole response
	failed                  // a whole response with a status of 500 or more
	partial                 // a response that was cut short
	absent                  // no response of an upstream
	limited                 // refused because its project was at its limit: left out like uncounted
	uncounted               // it does not say how submitters are served
	results   = int(limited) + 1
)

// resultOf is what a job counts as: one that was refused as invalid is uncounted, and so is one whose
// submitter left: nobody knows why. count500 says whether a status of 500 or more is a failure.
func resultOf(j *record.Job, count500 bool) result {
	switch {
	case j.Outcome == intake.Shed && j.Shedding == intake.ProjectLimit:
		return limited
	case j.Outcome == intake.Gone, j.Outcome == intake.Rejected, j.Outcome == intake.TooLarge:
		return uncounted
	case j.Completeness == intake.Absent:
		return absent
	case j.Completeness == intake.Partial:
		return partial
	case j.Outcome == intake.Failed && count500:
		return failed
	}
	return complete
}

// resultAt is the result of a job at one upstream: the job's own for the upstream that answered,
// and absent for those that did not. What happened before says nothing of an upstream.
func resultAt(j *record.Job, i int, count500 bool) result {
	switch j.Attempts[i].Outcome {
	case pool.Gone, pool.Moved: // the submitter left; the sidecar took the job away
		return uncounted
	case pool.Answered, pool.Failed:
		return resultOf(j, count500)
	case pool.Truncated:
		if i == len(j.Attempts)-1 && j.Completeness == intake.Partial {
			return resultOf(j, count500)
		}
	}
	return absent
}

// tally is how jobs ended.
type tally struct {
	results [results]uint64
	lost    [intake.Outcomes]uint64
}

func (t *tally) add(r result, o intake.Outcome) {
	t.results[r]++
	if r == failed || r == partial || r == absent {
		t.lost[o]++
	}
}

func (t *tally) merge(other *tally) {
	for r, n := range other.results {
		t.results[r] += n
	}
	for o, n := range other.lost {
		t.lost[o] += n
	}
}

// bad is how many of all jobs failed or did not come whole.
func (t *tally) bad() (bad, all uint64) {
	bad = t.results[failed] + t.results[partial] + t.results[absent]
	return bad, bad + t.results[complete]
}

// ended is what ended in a step with one priority.
type ended struct {
	tally
	firstByte, lastByte histogram
}

func (e *ended) add(j *record.Job, r result) {
	e.tally.add(r, j.Outcome)
	if r <= partial {
		e.firstByte.add(j.TTFB.Seconds())
	}
	if r <= failed {
		e.lastByte.add(j.Total.Seconds())
	}
}

func (e *ended) merge(other *ended) {
	e.tally.merge(&other.tally)
	e.firstByte.merge(&other.firstByte)
	e.lastByte.merge(&other.lastByte)
}

func (e *ended) figures() Figures {
	_, jobs := e.bad()
	return Figures{
		Jobs: jobs, Complete: e.results[complete], Failed: e.results[failed], Partial: e.results[partial],
		Absent: e.results[absent], Limited: e.results[limited],
		FirstByte: e.firstByte.quantiles(), LastByte: e.lastByte.quantiles(),
	}
}

// ring keeps something for each of the last steps: as many as it is long.
type ring[T any] []slot[T]

type slot[T any] struct {
	number int64 // of the step since the machine's start
	of     T
}

// at is what is kept of an instant since the start, or of the latest step if that is later.
func (r ring[T]) at(now time.Duration) *T {
	number := max(0, int64(now/step))
	s := &r[number%int64(len(r))]
	if number > s.number {
		*s = slot[T]{number: number}
	}
	return &s.of
}

// last calls do for what is kept of each of the last n steps until now, the oldest first.
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

// window is the key figures of the last n steps.
func (m *Machine) window(now time.Duration, n int64) Window {
	var by [selection.Priorities]ended
	m.hour.last(now, n, func(s *period) {
		for p := range by {
			by[p].merge(&s.jobs[p])
		}
	})
	length := time.Duration(n) * step
	w := Window{
		Seconds: length.Seconds(), Covered: min(now, length-step+now%step).Seconds(),
		High: by[selection.High].figures(), Low: by[selection.Low].figures(),
	}
	by[selection.High].merge(&by[selection.Low])
	w.All = by[selection.High].figures()
	return w
}

// Moment is what there is at one instant besides jobs that end.
type Moment struct {
	Upstreams []pool.State
	// InFlight is the jobs at upstreams, and Waiting those in the sidecar's queue.
	InFlight, Waiting int
}

// Point is the fleet at the end of a step of ten seconds.
type Point struct {
	// At is the instant, in seconds since 1970.
	At int64 `json:"at"`
	// Jobs is how many ended each second, Failed those of them with a response of status 500
	// or more, and Lost those with a response in part or none. FirstByteP50 and FirstByteP99
	// are times to first byte. All are over the minute before.
	Jobs         float64 `json:"jobs_per_second"`
	Failed       float64 `json:"failed_per_second"`
	Lost         float64 `json:"lost_per_second"`
	FirstByteP50 float64 `json:"first_byte_p50_seconds"`
	FirstByteP99 float64 `json:"first_byte_p99_seconds"`
	// InFlight is the jobs at upstreams at that instant, and Waiting those in the queue.
	InFlight int `json:"in_flight"`
	Waiting  int `json:"waiting"`

	looks, cores, rate float64 // sums over the looks: cores needed, and jobs that end each second
}

// look notes a moment, and ends the step before at the first look of a step.
func (m *Machine) look(now time.Duration, o *Moment) {
	p := &m.hour.at(now).point
	if p.looks == 0 && now >= step {
		end := now / step * step
		minute := m.window(end-1, spans[0])
		f, covered := &minute.All, max(minute.Covered, 1)
		before := &m.hour.at(end - 1).point
		before.At = m.start.Add(end).Unix()
		before.Jobs, before.Failed, before.Lost = float64(f.Jobs)/covered, float64(f.Failed)/covered, float64(f.Partial+f.Absent)/covered
		before.FirstByteP50, before.FirstByteP99 = f.FirstByte.P50, f.FirstByte.P99
	}
	cores, rate := m.demand(now, o.Upstreams)
	p.looks, p.cores, p.rate = p.looks+1, p.cores+cores, p.rate+rate
	p.InFlight, p.Waiting = o.InFlight, o.Waiting
}

// Points are the steps of the last hour that are over, the oldest first.
func (m *Machine) Points(now time.Time) []Point {
	points := make([]Point, 0, steps)
	m.hour.last(now.Sub(m.start), steps, func(s *period) {
		if s.point.At != 0 && s.point.looks > 0 {
			points = append(points, s.point)
		}
	})
	return points
}

// Quantiles says how values are spread.
type Quantiles struct {
	// P50, P90 and P99 are the values that 50, 90 and 99 % of all do not exceed, within 5 %;
	// 0 without values.
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
}

// A histogram has buckets of fixed bounds from a millisecond to 10^5 s. Each is a tenth
// wider than the one before.
const (
	perDecade = 24
	buckets   = 8*perDecade + 1
	leastTime = 1e-3
)

type histogram [buckets]uint32

func (h *histogram) add(value float64) {
	if !(value > leastTime) {
		h[0]++
		return
	}
	h[int(perDecade*min(math.Log10(value/leastTime), 8))]++
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other {
		h[i] += n
	}
}

func (h *histogram) quantiles() Quantiles {
	all := 0.0
	for _, n := range h {
		all += float64(n)
	}
	at := func(share float64) float64 {
		below := 0.0
		for i, n := range h {
			if below += float64(n); n > 0 && below >= share*all {
				return leastTime * math.Pow(10, (float64(i)+0.5)/perDecade) // the middle of the bucket
			}
		}
		return 0
	}
	return Quantiles{P50: at(0.5), P90: at(0.9), P99: at(0.99)}
}
