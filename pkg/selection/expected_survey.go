package selection

// survey is what Expected finds out about all views together before it weighs
// each: it lives for one pick, on the stack.
type survey struct {
	c   *ExpectedConfig
	job Job
	// coreRate stands in for rates that are not known.
	coreRate float64
	// perWait is the price of a second's wait.
	perWait float64
	// usable is the share of an upstream's cores that may look free.
	usable float64
	// perRank is the price of a rank in rendezvous order.
	perRank float64
	// stops is the time to a stop from which on it has a price, slowStart that
	// after a start.
	stops, slowStart float64
	// by compares in the project's rendezvous order; order is the first of it.
	by    order
	order ranking
}

// look fills the survey in.
func (s *survey) look(c *ExpectedConfig, job Job, views []View) {
	s.c, s.job = c, job
	on := func(p Part) bool { return c.Off&p == 0 }
	s.coreRate = meanCoreRate(views, c.CoreRate)
	s.perWait = 1
	if on(PartWaitPrice) {
		s.perWait = c.WaitPrice
	}
	s.usable = 1
	if on(PartSpare) {
		s.usable -= c.Spare
	}
	if on(PartStop) {
		s.stops = c.LongestJob
	}
	if on(PartSlowStart) {
		s.slowStart = c.SlowStart
	}
	if job.Project == 0 {
		return
	}
	if on(PartPlacement) {
		s.perRank = c.RankPrice * job.Fetch
		if on(PartCrowding) {
			s.perRank *= max(1, 2*job.Busy*job.Busy)
		}
	}
	s.by = newOrder(job.Project, views)
	floor := s.order.floor()
	for i := range views {
		if score := s.by.score(&views[i], floor); score > floor {
			s.order.add(i, score)
			floor = s.order.floor()
		}
	}
}

// warm reports whether the project counts as cached there.
func (s *survey) warm(v *View) bool {
	return v.Warm >= s.c.WarmAt || s.job.Project == 0
}

// offer makes the view at index the best, if it is cheaper or as cheap and
// earlier in rendezvous order.
func (s *survey) offer(best *candidate, index int, total float64, views []View) {
	if best.undercut(total) || total == best.total &&
		s.by.score(&views[index], 0) > s.by.score(&views[best.index], 0) {
		*best = candidate{index, total}
	}
}
