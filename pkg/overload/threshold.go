package overload

import (
	"fmt"
	"math"
)

// hysteresis is the share of the limit below which the stalled joblets must
// fall before a tripped breaker resets. Without it, a backlog around the limit
// would switch the breaker with every report.
const hysteresis = 0.8

// Threshold is a static breaker: an upstream with more stalled joblets than
// the limit gets no jobs until they are fewer than 0.8 times the limit.
//
// Source: the thesis, 9.1.2. Its limit is 100, and it has no hysteresis. Use it
// as the safety net under any selection policy.
type Threshold struct {
	limit   float64
	tripped bool
}

// NewThreshold returns what makes a detector for each upstream that trips
// above limit stalled joblets, or an error if the limit makes no sense.
func NewThreshold(limit float64) (func() Detector, error) {
	if !(limit > 0) || math.IsInf(limit, 0) {
		return nil, fmt.Errorf("threshold: the limit is %v stalled joblets: want a finite number above 0", limit)
	}
	return func() Detector { return &Threshold{limit: limit} }, nil
}

// Observe implements Detector. A number of stalled joblets that is NaN changes nothing.
func (t *Threshold) Observe(s Sample) Level {
	t.tripped = trips(t.tripped, s.Stalled, t.limit)
	if t.tripped {
		return 0
	}
	return 1
}

// trips is the next state of a breaker with hysteresis.
func trips(tripped bool, stalled, limit float64) bool {
	if tripped {
		return !(stalled < hysteresis*limit)
	}
	return stalled > limit
}
