package pool

// rules says which evidence against upstreams counts. If too many upstreams seem to be faulty, the fault is more likely
// in this sidecar or in the network.
type rules struct {
	suspicion bool // suspicion counts, unless more than half of the upstreams are suspect
	breakers  bool // breakers count, unless all are open: panic mode
	early     bool // breakers that have been open for the first, undoubled open time pass for half open
}

// areUsual reports whether all evidence counts.
func (r rules) areUsual() bool { return r == rules{suspicion: true, breakers: true} }

// takers counts upstreams: in [0] those that take new jobs, in [1] those that stop or drain.
type takers [2]struct{ n, suspects, shut int }

// add counts an upstream. shut is set if its breaker lets no job through.
func (t *takers) add(leaving, suspect, shut bool) {
	of := &t[0]
	if leaving {
		of = &t[1]
	}
	of.n++
	if suspect {
		of.suspects++
	}
	if shut {
		of.shut++
	}
}

// rules returns the rules that follow from the counts. If all upstreams stop or drain, they count as taking jobs.
func (t *takers) rules(allLeaving bool) rules {
	of := t[0]
	if allLeaving {
		of = t[1]
	}
	return rules{suspicion: 2*of.suspects <= of.n, breakers: of.shut < of.n || of.n == 0}
}
