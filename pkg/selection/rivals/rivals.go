// Package rivals holds host selection policies to compare with: a hash and a
// turn, which show what no knowledge at all is worth, and what other systems
// run. Each has a weakness that its comment names. None is meant for service:
// for that, use those of package selection.
package rivals

import (
	"fmt"
	"slices"
	"strings"

	"example.org/pilotfish/pkg/selection"
)

// Names lists the policies of this package.
func Names() []string {
	return []string{"baseline", "round-robin", "home-step", "cache-threshold", "sticky-until"}
}

// All lists every policy that New knows: those of package selection, then those
// of this one.
func All() []string { return slices.Concat(selection.Names(), Names()) }

// New returns the policy of that name, from this package or from package
// selection, with its default parameters. The error for an unknown name lists
// the known ones.
func New(name string) (selection.Policy, error) {
	switch name {
	case "baseline":
		return Baseline{}, nil
	case "round-robin":
		return RoundRobin{}, nil
	case "home-step":
		return HomeStep{}, nil
	case "cache-threshold":
		return CacheThreshold{}, nil
	case "sticky-until":
		return StickyUntil{}, nil
	}
	policy, err := selection.New(name)
	if err != nil {
		return nil, fmt.Errorf("%w, or to compare with one of %s", err, strings.Join(Names(), ", "))
	}
	return policy, nil
}
