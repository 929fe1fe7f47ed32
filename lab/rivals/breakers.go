package rivals

import (
	"slices"

	"example.org/pilotfish/internal/overload"
)

// Detection lists the overload detection policies of this package.
func Detection() []string { return []string{"adaptive", "breakwater"} }

// AllDetection lists every overload detection policy that NewDetector knows.
func AllDetection() []string { return slices.Concat(overload.Names(), Detection()) }

// NewDetector returns a function that makes a detector for one upstream, by a policy of this package or of package
// overload. s.Stalled is the initial threshold, or the initial number of credits.
func NewDetector(s overload.Settings) (func() overload.Detector, error) {
	switch target := s.Wait.Seconds(); s.Policy {
	case "adaptive":
		return func() overload.Detector { return adaptive(s.Stalled, target) }, nil
	case "breakwater":
		return func() overload.Detector { return breakwater(s.Stalled, target) }, nil
	}
	return s.Detector()
}

// adaptive is a breaker whose threshold of stalled joblets adapts to the reported waits. A report of a wait within
// the target raises the threshold by 2 % of the limit; a report of a longer wait lowers it by a tenth. The threshold stays
// between a tenth of the limit and four times the limit. This way it finds the backlog that an upstream can have
// within the target; a constant threshold must guess it.
//
// Source: Sedghpour, Klein and Tordsson (2021; the thesis, 5.4). Their controller keeps the tail of the response time below a
// target; this one uses the mean wait.
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

// breakwater counts credits: an upstream is admitted jobs while it has fewer stalled joblets than credits. A report of a
// wait within the target adds a thousandth of the limit to the credits, at least one. A report of a longer wait reduces
// them by 2 % times excess/target, at most by half.
//
// Source: Cho et al.'s Breakwater (2020; the thesis, 5.4). Their server distributes its credits to clients. Here each sidecar
// calculates the credits from the reports, so that two sidecars can use the same credit until the next report.
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
