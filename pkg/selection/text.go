package selection

// away is what a place costs that is not the first in a text's order, as a share of the time that the text is read
// there, beside what it would find at the first. So all sidecars send what they do not know to the same place, where
// others may have sent it before.
const away = 0.4

// text is the cost of running a job whose data is a text. An upstream reads such texts one after the other, so that
// cores and jobs that are being answered tell nothing of the wait; and what is not there is read anew each time. That
// time passes for the job, and for each that waits behind it.
func (p *pricing) text(v *View, index int) (c Cost) {
	c.Wait, c.Fetch = v.Unread, (1-v.Warm)*(1+p.job.Behind)*p.job.Fetch
	if p.first.rankOf(index) > 0 && !p.cached(v) {
		c.Placement = (away + p.job.Home) * c.Fetch
	}
	return c
}
