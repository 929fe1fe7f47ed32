package overload

import (
	"fmt"
	"math"
)

// How Adaptive moves its threshold with each report.
const (
	adaptiveUp    = 0.02 // share of the limit that is added while responses meet the target
	adaptiveDown  = 0.9  // factor while they do not
	adaptiveLeast = 0.1  // lowest threshold, as a share of the limit
	adaptiveMost  = 4    // highest threshold, as a share of the limit
)

// AdaptiveConfig holds the parameters of an Adaptive.
type AdaptiveConfig struct {
	// Limit is the threshold to start from, in stalled joblets; above 0.
	Limit float64
	// Target is the mean response time to keep, in seconds; 0 means 30.
	Target float64
}

// Adaptive is a breaker whose threshold of stalled joblets follows the response
// time. While reports meet the target it rises by a constant; while they miss it
// it falls by a factor. It stays between a tenth of the limit and four times the
// limit. So it finds out how much backlog an upstream can take, which a constant
// must guess. More stalled joblets than the threshold trip the breaker, fewer
// than 0.8 times the threshold reset it. A report without a response time leaves
// the threshold alone.
//
// Source: Sedghpour, Klein and Tordsson (2021). Their controller sets the limit
// of a service mesh's breaker so that the tail of the response time stays below
// a target. This one is simpler: it only asks whether the target is met. One
// that asks by how much would be swamped by single jobs that last for hours. Use
// it where upstreams differ in what they can take. Response times must be those
// of the upstream, not of the streaming to submitters.
type Adaptive struct {
	c         AdaptiveConfig
	threshold float64
	tripped   bool
}

// NewAdaptive returns what makes a detector for each upstream, or an error
// that names the parameter that makes no sense.
func NewAdaptive(c AdaptiveConfig) (func() Detector, error) {
	if !(c.Limit > 0) || math.IsInf(c.Limit, 0) {
		return nil, fmt.Errorf("adaptive: Limit is %v stalled joblets: want a finite number above 0", c.Limit)
	}
	if !(c.Target >= 0) || math.IsInf(c.Target, 0) {
		return nil, fmt.Errorf("adaptive: Target is %v s: want a finite number, 0 (for 30) or more", c.Target)
	}
	if c.Target == 0 {
		c.Target = 30
	}
	return func() Detector { return &Adaptive{c: c, threshold: c.Limit} }, nil
}

// Observe implements Detector.
func (a *Adaptive) Observe(s Sample) Level {
	switch {
	case s.Response > a.c.Target:
		a.threshold = max(adaptiveLeast*a.c.Limit, a.threshold*adaptiveDown)
	case s.Response <= a.c.Target:
		a.threshold = min(adaptiveMost*a.c.Limit, a.threshold+adaptiveUp*a.c.Limit)
	}
	a.tripped = trips(a.tripped, s.Stalled, a.threshold)
	if a.tripped {
		return 0
	}
	return 1
}
