package pool

import (
	"time"

	"pilotfish/pkg/overload"
	"pilotfish/pkg/selection"
)

// Choice is the part of a Config that may change while jobs run.
type Choice struct {
	Policy selection.Policy
	// Detector replaces the upstreams' detectors, which begin at level 1; nil
	// keeps them and what they have seen.
	Detector func() overload.Detector
	Stale    time.Duration
}

// Choose makes the pool choose in another way from now on. What it knows of
// the upstreams stays.
func (p *Pool) Choose(c Choice) {
	if c.Policy == nil || c.Stale <= 0 {
		panic("BUG: pool: a choice without a policy, or with reports that are stale at once")
	}
	p.cfg.Policy, p.cfg.Stale = c.Policy, c.Stale
	if c.Detector == nil {
		return
	}
	p.cfg.Detector = c.Detector
	for _, m := range p.members {
		m.detector, m.level = c.Detector(), 1
	}
}
