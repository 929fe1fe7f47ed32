package selection

import (
	"fmt"
	"strings"
)

// Names lists every policy that New knows, the thesis's first.
func Names() []string {
	return []string{
		"baseline", "random", "dynamic",
		"round-robin", "least-in-flight", "stretch",
		"home-step", "bounded-hash", "p2c-ewma",
		"cache-threshold", "sticky-until",
		"expected",
	}
}

// New returns the policy of that name with its default parameters. The error
// for an unknown name lists the known ones.
func New(name string) (Policy, error) {
	switch name {
	case "baseline":
		return Baseline{}, nil
	case "random":
		return Random{}, nil
	case "dynamic":
		return Dynamic{}, nil
	case "round-robin":
		return RoundRobin{}, nil
	case "least-in-flight":
		return LeastInFlight{}, nil
	case "stretch":
		return Stretch{}, nil
	case "home-step":
		return HomeStep{}, nil
	case "bounded-hash":
		return BoundedHash{}, nil
	case "p2c-ewma":
		return P2CEWMA{}, nil
	case "cache-threshold":
		return CacheThreshold{}, nil
	case "sticky-until":
		return StickyUntil{}, nil
	case "expected":
		return NewExpected(ExpectedConfig{})
	}
	return nil, fmt.Errorf("unknown selection policy %q: want one of %s", name, strings.Join(Names(), ", "))
}
