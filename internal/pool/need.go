package pool

import (
	"cmp"
	"slices"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/pkg/selection"
)

// Request is what Claim is asked for.
type Request struct {
	// Project is a hash of the project's identifier; 0 for none.
	Project uint64
	// Data is the parts of the project's data; nil is one.
	Data     *intake.Parts
	Priority selection.Priority
	// Prefetch is set for a request that only loads the project's data. It needs an upstream with a free core.
	Prefetch bool
	// Heavy is what Pool.Heavy returns of the job.
	Heavy bool
	// Bytes is the size of the project's data, if the job tells it; 0 if not.
	Bytes float64
	// LengthKey is a hash of what tells the project's jobs apart by their duration; 0 for nothing.
	LengthKey uint64
	// Among, if not nil, are the only addresses that the job may go to.
	Among *Places
	// Fallbacks is how many upstreams Choice.Fallbacks names at most.
	Fallbacks int
	// Waiter is the job if it may be moved while it waits; nil if not.
	Waiter Waiter
}

// need finds out about a job's data. keep remembers the job.
func (p *Pool) need(n *need, r *Request, keep bool) {
	*n = need{named: p.projects.state(r.Project, keep), priority: r.Priority, data: data{bytes: 1}}
	n.project = n.named
	place := r.Project
	switch {
	case r.Project == 0:
	case r.Data == nil:
		n.data.one[0] = intake.Part{Key: r.Project, Bytes: 1}
		n.data.parts = n.data.one[:]
	case r.Data.Set:
		place = r.Data.Parts[0].Key
		p.sizes(&n.data, r.Data.Parts, keep)
	default:
		n.prompt = p.prompts.Prompt(r.Data.Parts)
		if place = n.prompt.Place; keep {
			p.prompts.Observe(n.prompt)
		}
	}
	if place != r.Project {
		n.project = p.projects.state(place, keep)
	}
	if r.LengthKey != 0 {
		n.length = hash.Pair(n.project.id, r.LengthKey)
	}
}

// sizes fills in the sizes of the parts of a set that listings have named. If one is unknown, all parts count the same.
func (p *Pool) sizes(d *data, parts []intake.Part, keep bool) {
	*d = data{set: true, parts: slices.Clone(parts)}
	for i := range d.parts {
		state := p.projects.state(d.parts[i].Key, keep)
		size := state.size()
		if size == 0 {
			size = p.listedSize(d.parts[i].Key)
		}
		if keep {
			state.listed = cmp.Or(state.listed, size)
		}
		d.parts[i].Bytes = size
		d.bytes += size
	}
	d.size = d.bytes
	if slices.ContainsFunc(d.parts, func(part intake.Part) bool { return part.Bytes == 0 }) {
		for i := range d.parts {
			d.parts[i].Bytes = 1
		}
		d.bytes, d.size = float64(len(d.parts)), 0
	}
}

// listedSize is the size of a part where no job has needed it yet, as some listing tells it; 0 is unknown.
func (p *Pool) listedSize(part uint64) float64 {
	for _, m := range p.set[:min(len(p.set), many)] {
		if bytes := m.cached.bytes(part); bytes > 0 {
			return bytes
		}
	}
	return 0
}

// learnSizes remembers the sizes that listings tell of what a job needs that goes to m.
func (p *Pool) learnSizes(m *member, n *need) {
	n.project.listed = cmp.Or(n.data.listed, n.project.listed)
	for i := 0; n.data.set && i < len(n.data.parts); i++ {
		if bytes := m.cached.bytes(n.data.parts[i].Key); bytes > 0 {
			p.projects.find(n.data.parts[i].Key).listed = bytes
		}
	}
}

// Heavy reports whether a job is for the upstreams for heavy jobs. None is while there are none, or no others.
func (p *Pool) Heavy(r Request) bool {
	if !p.counted.mixed || r.Project == 0 {
		return false
	}
	n, s := &p.memory.need, &p.cfg.Heavy
	p.need(n, &r, false)
	size := n.total()
	length, _ := p.lengths.expected(n)
	if !n.data.set && saneBytes(r.Bytes) {
		size = r.Bytes
	}
	return p.heavy[r.Project] || p.heavy[n.project.id] ||
		s.Bytes > 0 && size >= float64(s.Bytes) ||
		s.Expected > 0 && length >= s.Expected.Seconds()
}
