package selection

// minPlacement is the surcharge of an upstream that is not the first-ranked one and is not known to have any of the
// prompt cached, as a share of the time to read the prompt. With this surcharge all sidecars send a new prompt to the
// same upstream, and so reuse what the others have sent.
const minPlacement = 0.4

// prompt is the cost of running a prompt at v. Prefill runs one prompt at a time, so the number of jobs that are
// generating their responses says nothing about the wait. Reading a prompt again delays the job and every prompt queued
// behind it.
func (p *pricing) prompt(v *View, index int) (c Cost) {
	c.Wait, c.Fetch = v.PrefillWait, (1-v.Warm)*(1+p.job.QueuedBehind)*p.job.Fetch
	if p.first.rankOf(index) > 0 && !p.isCached(v) {
		c.Placement = (minPlacement + p.job.FirstPlaceHitRate) * c.Fetch
	}
	return c
}
