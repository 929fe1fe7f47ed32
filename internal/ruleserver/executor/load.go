package executor

// Load is what an executor says of itself.
type Load struct {
	Cores, Busy int
	Running     [priorities]int // jobs that have not left, less those whose next joblet is stalled
	Stalled     [priorities]int // joblets that are ready and wait for a core
	Totals      Totals
}

// Totals count events since the executor was made. They never shrink.
type Totals struct {
	Started   [priorities][kinds]uint64 // joblets
	Completed [priorities][kinds]uint64 // joblets, those that failed included
	Evictions uint64
}

func (m *machine) load() Load {
	l := Load{Cores: m.cores, Busy: m.busy, Totals: m.totals}
	l.Totals.Evictions = m.cache.evictions
	for j := range m.jobs {
		if !j.stalled() {
			l.Running[j.rank.priority]++
		}
	}
	for _, n := range m.ready {
		l.Stalled[n.rank.priority]++
	}
	return l
}
