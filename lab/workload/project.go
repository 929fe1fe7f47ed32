package workload

import "example.org/pilotfish/lab/trace"

// projectModel is one project of the population. Only imports changes once it is drawn.
type projectModel struct {
	ID trace.Project
	// Bytes is the size of its data in a cache.
	Bytes int64
	// Load is the core-seconds to fetch the data, the FeedSource joblet.
	Load float64
	// Period is the time between two firings of its schedule, and Phase when
	// the first is due, in seconds.
	Period, Phase float64
	// Channels are its export channels; a trace counts them from 1.
	Channels []channelModel
	// Sets are its sets of shared rules.
	Sets []setModel
	// Popularity is how often people open it, relative to the others.
	Popularity float64
	// view is the core-seconds of a typical high job.
	view float64
	// imports is how often its data was replaced so far.
	imports int64
}

// channelModel is one export channel of a project.
type channelModel struct {
	// Set is the number of the set of shared rules that comes first, from 1; 0 is none.
	Set int
	// Operators and Output are the usual core-seconds of those joblets.
	Operators, Output float64
}

// setModel is a set of rules that channels share.
type setModel struct {
	Name string
	// Work is the core-seconds of its SharedOperators joblet.
	Work float64
}

// work is the core-seconds of one firing when the data is cached.
func (p *projectModel) work() float64 {
	sum := 0.0
	for _, c := range p.Channels {
		sum += c.Operators + c.Output
	}
	for _, s := range p.Sets {
		sum += s.Work
	}
	return sum
}
