package overload

import (
	"fmt"
	"math"
	"strings"
)

// Names lists every policy that New knows.
func Names() []string {
	return []string{"none", "threshold"}
}

// New returns what makes a detector for one upstream, by the policy's name. limit
// is the number of stalled joblets above which an upstream is overloaded;
// 100 is the thesis's. The error names the unknown policy or the senseless limit.
func New(name string, limit float64) (func() Detector, error) {
	var detector func() Detector
	switch name {
	case "none":
		return func() Detector { return None{} }, nil
	case "threshold":
		detector = func() Detector { return NewThreshold(limit) }
	default:
		return nil, fmt.Errorf("unknown overload policy %q: want one of %s", name, strings.Join(Names(), ", "))
	}
	if !(limit > 0) || math.IsInf(limit, 0) {
		return nil, fmt.Errorf("overload policy %s: the limit is %v stalled joblets: want a finite number above 0", name, limit)
	}
	return detector, nil
}
