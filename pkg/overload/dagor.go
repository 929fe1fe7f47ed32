package overload

import (
	"fmt"
	"math"
)

// How Dagor moves the level with each report (the paper's 5 % and 1 %).
const (
	dagorDown  = 0.95 // factor while the upstream is overloaded
	dagorUp    = 0.01 // what is added while it is not
	dagorFloor = 0.02 // lowest level: the most important jobs still pass as probes
)

// DagorConfig holds the parameters of a Dagor.
type DagorConfig struct {
	// Limit is the number of stalled joblets above which an upstream is
	// overloaded that does not report its wait; above 0. The thesis's is 100.
	Limit float64
	// WaitLimit is the mean wait, in seconds, above which an upstream is
	// overloaded that reports it; 0 means 10. The paper's limit is 20 ms, for
	// services that answer within 500 ms. 10 s is the same share, 4 %, of the
	// 240 s that jobs wait in a queue at most.
	WaitLimit float64
	// IgnoreWait makes Stalled the only input, as in the thesis.
	IgnoreWait bool
}

// Dagor moves the level at which an upstream admits jobs by Rank. With every
// report the level falls to 0.95 times itself while the upstream is overloaded,
// and rises by 0.01 while it is not, between 0.02 and 1. So low jobs are refused
// before high ones, and by project, so that the admitted projects keep their
// caches.
//
// Source: Zhou et al. (2018) as the thesis uses it, 9.1.3. The paper moves
// its level along a histogram of the arrivals; here Rank spreads each priority
// evenly, and the level itself is scaled. Use it where an overloaded pool
// must shed low jobs. It reacts within a minute, not within a report.
type Dagor struct {
	c     DagorConfig
	level float64
}

// NewDagor returns what makes a detector for each upstream, or an error that
// names the parameter that makes no sense.
func NewDagor(c DagorConfig) (func() Detector, error) {
	if !(c.Limit > 0) || math.IsInf(c.Limit, 0) {
		return nil, fmt.Errorf("dagor: Limit is %v stalled joblets: want a finite number above 0", c.Limit)
	}
	if !(c.WaitLimit >= 0) || math.IsInf(c.WaitLimit, 0) {
		return nil, fmt.Errorf("dagor: WaitLimit is %v s: want a finite number, 0 (for 10) or more", c.WaitLimit)
	}
	if c.WaitLimit == 0 {
		c.WaitLimit = 10
	}
	return func() Detector { return &Dagor{c: c, level: 1} }, nil
}

// Observe implements Detector.
func (d *Dagor) Observe(s Sample) Level {
	if d.overloaded(s) {
		d.level = max(dagorFloor, d.level*dagorDown)
	} else {
		d.level = min(1, d.level+dagorUp)
	}
	return Level(d.level)
}

// overloaded judges by the wait where it is reported, else by the stalled joblets.
func (d *Dagor) overloaded(s Sample) bool {
	if math.IsNaN(s.Wait) || d.c.IgnoreWait {
		return s.Stalled > d.c.Limit
	}
	return s.Wait > d.c.WaitLimit
}
