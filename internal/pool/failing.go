package pool

import (
	"math"
	"time"
)

// failing compares what an upstream tells of the jobs that ended there, those of
// all sidecars, with what this sidecar has seen of its own. An upstream that
// fails every job at once costs each sidecar a few jobs before it knows; together
// they know after the first few.
type failing struct {
	told          bool
	ended, failed float64 // the upstream's counters, as it last told them
	seen          float64 // failures that this sidecar has seen since
}

// compare takes what the upstream tells now. It returns how many jobs ended and
// failed since it last told, and how many of the failures are of other sidecars;
// 0 where that is not known, or the upstream has restarted.
func (f *failing) compare(r Report) (ended, failed, others float64) {
	if known := r.Completed >= 0 && r.Failed >= 0; !known {
		*f = failing{}
		return 0, 0, 0
	}
	before := *f
	*f = failing{told: true, ended: r.Completed, failed: r.Failed}
	ended, failed = r.Completed-before.ended, r.Failed-before.failed
	if !before.told || ended < 0 || failed < 0 {
		return 0, 0, 0
	}
	return ended, failed, math.Max(0, failed-before.seen)
}

// hearFailures tells the breaker what the upstream says of the jobs of all sidecars.
func (m *member) hearFailures(now time.Time, r Report) {
	ended, failed, others := m.failing.compare(r)
	m.gate.Hear(now, ended, failed, others)
}
