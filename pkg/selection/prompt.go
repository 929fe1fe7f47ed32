package selection

// away is the cost of an upstream other than the first-ranked one, as a share of the time to read the prompt, where nothing
// of the prompt is known to be cached. With it all sidecars send a new prompt to the same upstream, and find what others sent.
const away = 0.4

// prompt is the cost of running a prompt at v. Prefill runs one prompt at a time, so the number of jobs that are being
// answered says nothing about the wait. Reading a prompt again delays the job and every prompt queued behind it.
func (p *pricing) prompt(v *View, index int) (c Cost) {
	c.Wait, c.Fetch = v.PrefillWait, (1-v.Warm)*(1+p.job.QueuedBehind)*p.job.Fetch
	if p.first.rankOf(index) > 0 && !p.cached(v) {
		c.Placement = (away + p.job.FirstPlaceHitRate) * c.Fetch
	}
	return c
}
