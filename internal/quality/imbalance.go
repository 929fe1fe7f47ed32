package quality

// BacklogImbalance compares the backlog of each upstream that reports with the mean of all: the stalled joblets
// beyond the mean, divided by the mean. It is near 0 for an even fleet and -1 for an upstream without a backlog. A mean
// of less than one joblet counts as one, so that a single joblet is no imbalance.
//
// Source: the blog, "backlog imbalance".
func (v *View) BacklogImbalance(each func(address string, imbalance float64)) {
	sum, n := 0.0, 0.0
	for i := range v.Upstreams {
		if u := &v.Upstreams[i]; u.ReportAge >= 0 {
			sum, n = sum+u.Stalled, n+1
		}
	}
	for i := range v.Upstreams {
		if u := &v.Upstreams[i]; u.ReportAge >= 0 {
			mean := sum / n
			each(u.Address, (u.Stalled-mean)/max(mean, 1))
		}
	}
}
