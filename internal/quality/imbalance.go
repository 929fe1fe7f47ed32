package quality

// BacklogImbalance compares the longest backlog of an upstream that reports with the mean of all: the stalled joblets
// beyond the mean, divided by the mean. 0 is an even fleet. A mean of less than one joblet counts as one, so that a single
// joblet is no imbalance. ok is false without reports.
//
// Source: the blog, "backlog imbalance".
func (v *View) BacklogImbalance() (imbalance float64, ok bool) {
	sum, n, most := 0.0, 0.0, 0.0
	for i := range v.Upstreams {
		if u := &v.Upstreams[i]; u.ReportAge >= 0 {
			sum, n, most = sum+u.Stalled, n+1, max(most, u.Stalled)
		}
	}
	if n == 0 {
		return 0, false
	}
	return (most - sum/n) / max(sum/n, 1), true
}
