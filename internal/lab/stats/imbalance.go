package stats

import (
	"fmt"
	"math"
)

// Imbalance follows how far each upstream's backlog is from the mean of all.
type Imbalance struct {
	mean, distance *Timeline
	upstreams      []*Timeline
}

// NewImbalance returns an imbalance over a number of upstreams that begins at
// 0 with no backlog. Its timelines have at most limit points.
func NewImbalance(upstreams, limit int) *Imbalance {
	i := &Imbalance{mean: NewTimeline(limit), distance: NewTimeline(limit)}
	for range upstreams {
		i.upstreams = append(i.upstreams, NewTimeline(limit))
	}
	return i
}

// Set says what the backlogs of all upstreams are from at on, in seconds.
func (i *Imbalance) Set(at float64, backlogs []float64) {
	if len(backlogs) != len(i.upstreams) {
		panic(fmt.Sprintf("stats: %d backlogs of %d upstreams", len(backlogs), len(i.upstreams)))
	}
	mean := 0.0
	for _, b := range backlogs {
		mean += b / float64(len(backlogs))
	}
	distance := 0.0
	for n, b := range backlogs {
		i.upstreams[n].Set(at, b-mean)
		distance += math.Abs(b-mean) / float64(len(backlogs))
	}
	i.mean.Set(at, mean)
	i.distance.Set(at, distance)
}

// Relative is the mean distance of a backlog from the mean of all, over that
// mean, both over all time: 0 is perfect balance, 2(1-1/n) all the backlog at
// one of n upstreams; 0 without any backlog.
func (i *Imbalance) Relative() float64 {
	mean := i.mean.Mean()
	if mean == 0 {
		return 0
	}
	return i.distance.Mean() / mean
}

// Distance follows the mean distance of a backlog from the mean of all.
func (i *Imbalance) Distance() *Timeline { return i.distance }

// Upstream follows an upstream's backlog less the mean of all, by its number from 0.
func (i *Imbalance) Upstream(number int) *Timeline { return i.upstreams[number] }
