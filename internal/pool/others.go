package pool

// others is what an upstream tells of the jobs of all sidecars that ended there. One that fails
// every job at once costs each sidecar a few jobs before it knows; together they know after the
// first few.
type others struct {
	known         bool
	ended, failed float64 // the upstream's counters, as it last told them
	seen          float64 // failures that this sidecar has seen since
	most          bool    // at least half of the jobs failed that ended there of late
}

// compare takes what the upstream tells now, and returns how many jobs of other sidecars failed
// since it last told; 0 where that is not known, or the upstream has restarted.
func (o *others) compare(r Report) (failures float64) {
	if r.Completed < 0 || r.Failed < 0 {
		*o = others{most: o.most}
		return 0
	}
	ended, failed := r.Completed-o.ended, r.Failed-o.failed
	before := *o
	*o = others{known: true, ended: r.Completed, failed: r.Failed, most: o.most}
	if !before.known || ended < 0 || failed < 0 {
		return 0
	}
	if ended > 0 {
		o.most = 2*failed >= ended
	}
	return max(0, failed-before.seen)
}
