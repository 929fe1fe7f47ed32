package overload

import (
	"fmt"
	"strings"
)

// Names lists every policy that New knows.
func Names() []string {
	return []string{"none", "threshold", "dagor", "adaptive"}
}

// New returns what makes a detector for one upstream, by the policy's name,
// with its default parameters. limit is the stalled joblets above which an
// upstream is overloaded, 100 in the thesis; none has no use for it. The error
// lists the known policies, or tells the limit that makes no sense.
func New(name string, limit float64) (func() Detector, error) {
	switch name {
	case "none":
		return func() Detector { return None{} }, nil
	case "threshold":
		return NewThreshold(limit)
	case "dagor":
		return NewDagor(DagorConfig{Limit: limit})
	case "adaptive":
		return NewAdaptive(AdaptiveConfig{Limit: limit})
	}
	return nil, fmt.Errorf("unknown overload policy %q: want one of %s", name, strings.Join(Names(), ", "))
}
