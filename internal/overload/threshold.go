package overload

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

// Observe implements Detector. A number of stalled joblets that is NaN changes nothing.
func (t *Threshold) Observe(s Sample) Level {
	if t.tripped {
		t.tripped = !(s.Stalled < hysteresis*t.limit)
	} else {
		t.tripped = s.Stalled > t.limit
	}
	if t.tripped {
		return 0
	}
	return 1
}
