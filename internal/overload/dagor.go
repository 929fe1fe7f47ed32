package overload

import "math"

// How Dagor moves the level with each report (the paper's 5 % and 1 %).
const (
	dagorDown  = 0.95 // factor while the upstream is overloaded
	dagorUp    = 0.01 // what is added while it is not
	dagorFloor = 0.02 // lowest level: the most important jobs still pass as probes

	// dagorWait is the mean wait, in seconds, above which an upstream is overloaded that
	// reports it. The paper's limit is 20 ms, for services that answer within 500 ms. This
	// is the same share, 4 %, of the 240 s that jobs wait in a queue at most.
	dagorWait = 10
)

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
	limit      float64 // stalled joblets; the thesis's is 100
	ignoreWait bool
	level      float64
}

// NewDagor makes the detector of one upstream. More stalled joblets than limit are
// overload where it does not report its wait; with ignoreWait, as in the thesis, always.
func NewDagor(limit float64, ignoreWait bool) *Dagor {
	return &Dagor{limit: limit, ignoreWait: ignoreWait, level: 1}
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
	if math.IsNaN(s.Wait) || d.ignoreWait {
		return s.Stalled > d.limit
	}
	return s.Wait > dagorWait
}
