package overload

import (
	"fmt"
	"math"
)

// How Adaptive moves its threshold with each report: up by a share of the
// initial limit while responses meet the target, down by a factor while they
// do not; and the shares of the initial limit that it stays within.
const (
	adaptiveUp    = 0.02
	adaptiveDown  = 0.9
	adaptiveLeast = 0.1
	adaptiveMost  = 4
)

// AdaptiveConfig holds the parameters of an Adaptive.
type AdaptiveConfig struct {
	// Limit is the threshold to start from, in stalled joblets; above 0.
	Limit float64
	// Target is the mean response time to keep, in seconds; 0 means 30, which is
	// between the thesis's mean job of 12 s and what its users bear.
	Target float64
}

// Adaptive is a breaker whose threshold of stalled joblets follows the response
// time: additive increase while reports meet the target, multiplicative
// decrease while they miss it, from a tenth of the limit to four times it. So it
// finds by itself how much backlog an upstream can bear, which a constant must guess.
// Crossing the threshold trips it, falling below 0.8 times the threshold resets it. A report
// without a response time leaves the threshold alone.
//
// Source: Sedghpour, Klein and Tordsson (2021), who have a controller set the
// limit of a service mesh's breaker so that the tail of the response time
// stays below a target. This controller is a simpler one; it only asks whether
// the target is met, since single jobs that last hours would swamp one that
// asks by how much. Use it where upstreams differ in what they bear; response
// times must be those of the upstream, not of the streaming submitters.
type Adaptive struct {
	c         AdaptiveConfig
	threshold float64
	tripped   bool
}

// NewAdaptive returns what makes a detector for each upstream, or an error
// that names the senseless parameter.
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
