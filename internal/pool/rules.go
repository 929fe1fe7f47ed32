package pool

import (
	"time"

	"example.org/pilotfish/pkg/overload"
	"example.org/pilotfish/pkg/selection"
)

// Rules is the part of a Config that may change while jobs run.
type Rules struct {
	// Policy is as in Config.
	Policy selection.Policy
	// Detector replaces the upstreams' detectors, which begin at level 1; nil
	// keeps them and what they have seen.
	Detector func() overload.Detector
	// Interval is as in Config.
	Interval time.Duration
}

// SetRules makes the pool pick by other rules from now on. What it knows of the
// upstreams' load and caches stays.
func (p *Pool) SetRules(r Rules) {
	if r.Policy == nil || r.Interval <= 0 {
		panic("BUG: pool: rules without a policy, or with an interval that is not positive")
	}
	p.cfg.Policy, p.cfg.Interval = r.Policy, r.Interval
	if r.Detector == nil {
		return
	}
	p.cfg.Detector = r.Detector
	for _, m := range p.members {
		m.detector, m.level = r.Detector(), 1
	}
}
