package stats

import (
	"fmt"
	"math"
)

// Timeline follows a value that changes in steps, such as a backlog. It keeps the
// means over equal stretches of time. When there are too many to draw, the
// stretches become twice as long.
type Timeline struct {
	width float64
	// areas[i] is the integral over stretch i.
	areas []float64
	limit int
	now   float64
	value float64
}

// NewTimeline returns a timeline that begins at 0 with the value 0 and keeps
// at most limit points. It panics when that is less than 2.
func NewTimeline(limit int) *Timeline {
	if limit < 2 {
		panic(fmt.Sprintf("stats: a timeline of %d points", limit))
	}
	return &Timeline{width: 1, limit: limit}
}

// Set says that the value is v from at on, in seconds. It panics if at lies before
// the last Set.
func (t *Timeline) Set(at, v float64) {
	if !(at >= t.now) || math.IsInf(at, 1) {
		panic(fmt.Sprintf("stats: a timeline at %v s cannot go on at %v s", t.now, at))
	}
	for at > t.width*float64(t.limit) {
		t.halve()
	}
	for t.now < at {
		i := int(t.now / t.width)
		end := min(at, float64(i+1)*t.width)
		for len(t.areas) <= i {
			t.areas = append(t.areas, 0)
		}
		t.areas[i] += t.value * (end - t.now)
		t.now = end
	}
	t.value = v
}

// halve makes one stretch of every two.
func (t *Timeline) halve() {
	half := (len(t.areas) + 1) / 2
	for i := range half {
		sum := t.areas[2*i]
		if 2*i+1 < len(t.areas) {
			sum += t.areas[2*i+1]
		}
		t.areas[i] = sum
	}
	t.areas = t.areas[:half]
	t.width *= 2
}

// Point is the mean of a value over the time from At to the next point.
type Point struct {
	At    float64
	Value float64
}

// Points returns the means so far. The last one may be over a shorter time.
func (t *Timeline) Points() []Point {
	points := make([]Point, len(t.areas))
	for i, area := range t.areas {
		at := float64(i) * t.width
		points[i] = Point{At: at, Value: area / (min(t.now, at+t.width) - at)}
	}
	return points
}

// Mean is the mean over all time so far; 0 before any.
func (t *Timeline) Mean() float64 {
	if t.now == 0 {
		return 0
	}
	sum := 0.0
	for _, area := range t.areas {
		sum += area
	}
	return sum / t.now
}

// Imbalance follows how far the upstreams' backlogs are from the mean of all.
type Imbalance struct {
	upstreams      int
	mean, distance *Timeline
}

// NewImbalance returns an imbalance over a number of upstreams that begins at
// 0 with no backlog. Its timelines have at most limit points.
func NewImbalance(upstreams, limit int) *Imbalance {
	return &Imbalance{upstreams: upstreams, mean: NewTimeline(limit), distance: NewTimeline(limit)}
}

// Set says what the backlogs of all upstreams are from at on, in seconds.
func (i *Imbalance) Set(at float64, backlogs []float64) {
	if len(backlogs) != i.upstreams {
		panic(fmt.Sprintf("stats: %d backlogs of %d upstreams", len(backlogs), i.upstreams))
	}
	mean := 0.0
	for _, b := range backlogs {
		mean += b / float64(len(backlogs))
	}
	distance := 0.0
	for _, b := range backlogs {
		distance += math.Abs(b-mean) / float64(len(backlogs))
	}
	i.mean.Set(at, mean)
	i.distance.Set(at, distance)
}

// Relative is the mean distance of a backlog from the mean backlog, divided by
// the mean backlog, both over all time. It is 0 for perfect balance, and 2(1-1/n)
// if one of n upstreams has all the backlog. Without any backlog it is 0.
func (i *Imbalance) Relative() float64 {
	mean := i.mean.Mean()
	if mean == 0 {
		return 0
	}
	return i.distance.Mean() / mean
}

// Distance follows the mean distance of a backlog from the mean backlog.
func (i *Imbalance) Distance() *Timeline { return i.distance }
