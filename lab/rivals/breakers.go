package rivals

import (
	"slices"

	"example.org/pilotfish/internal/overload"
)

// Detection is the overload detection policies of this package.
func Detection() []string { return []string{"adaptive", "breakwater"} }

// AllDetection lists every overload detection policy that NewDetector knows.
func AllDetection() []string { return slices.Concat(overload.Names(), Detection()) }

// NewDetector returns the function that makes a detector for one upstream, of this package or of package overload. Its
// limit is where a threshold starts.
func NewDetector(s overload.Settings) (func() overload.Detector, error) {
	switch target := s.Wait.Seconds(); s.Policy {
	case "adaptive":
		return func() overload.Detector { return adaptive(s.Stalled, target) }, nil
	case "breakwater":
		return func() overload.Detector { return breakwater(s.Stalled, target) }, nil
	}
	return s.Detector()
}

// adaptive is a breaker whose threshold of stalled joblets follows the waits. While reports meet the target it rises by 2 %
// of the limit; while they miss it, it falls by a tenth. It stays between a tenth of the limit and four times the limit. So it finds
// how much backlog an upstream can take, which a constant must guess.
//
// Source: Sedghpour, Klein and Tordsson (2021; the thesis, 5.4). Their controller holds the tail of the response time below a
// target; this one only asks whether the mean wait meets it.
func adaptive(limit, target float64) overload.Detector {
	threshold, tripped := limit, false
	return func(s overload.Sample) overload.Level {
		switch {
		case s.Wait > target:
			threshold = max(0.1*limit, 0.9*threshold)
		case s.Wait <= target:
			threshold = min(4*limit, threshold+0.02*limit)
		}
		tripped = s.Stalled > threshold || tripped && s.Stalled >= 0.8*threshold
		return overload.Level(truth(!tripped))
	}
}

// breakwater issues credits: an upstream takes further jobs while fewer joblets wait there than it has credits. With
// every report their number rises by a thousandth of the limit, at least by one, while the wait is below the target; above it, it
// falls by 2 % for each target's worth of excess, at most by half.
//
// Source: Cho et al.'s Breakwater (2020; the thesis, 5.4). There a server hands its credits to clients; here each sidecar counts for itself
// what the reports of all show, so that two sidecars may use one credit until the next report.
func breakwater(limit, target float64) overload.Detector {
	credits := limit
	return func(s overload.Sample) overload.Level {
		switch {
		case s.Wait > target && target > 0:
			credits = max(1, credits*max(0.5, 1-0.02*(s.Wait-target)/target))
		case s.Wait <= target:
			credits += max(1, 0.001*limit)
		}
		return overload.Level(truth(s.Stalled < credits))
	}
}
