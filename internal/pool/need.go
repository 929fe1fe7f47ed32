package pool

import (
	"cmp"
	"slices"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/pkg/selection"
)

// Request describes a job to Claim.
type Request struct {
	// Project is the hash of the project's identifier; 0 is none.
	Project uint64
	// Data lists the parts of the project's data; nil means one part.
	Data     *intake.Parts
	Priority selection.Priority
	// Prefetch is set for a request that only loads the project's data. It requires a free core.
	Prefetch bool
	// Heavy is the result of Pool.IsHeavy.
	Heavy bool
	// Bytes is the size of the project's data; 0 is unknown.
	Bytes float64
	// LengthKey is the hash of the values of job.length_key, which group the project's jobs by duration; 0 is none.
	LengthKey uint64
	// Among, if not nil, restricts the job to these addresses.
	Among *AddressSet
	// Fallbacks is the maximum length of Choice.Fallbacks.
	Fallbacks int
	// Waiter is the job, if it can be moved while it waits; else nil.
	Waiter Waiter
}

// fillNeed fills in n for a job. With keep, it also stores the states of the job's projects.
func (p *Pool) fillNeed(n *need, r *Request, keep bool) {
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
		p.fillSizes(&n.data, r.Data.Parts, keep)
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
		n.lengthKey = hash.Pair(n.project.id, r.LengthKey)
	}
}

// fillSizes fills in the sizes of the parts of a set. If one is unknown, all parts have the same weight.
func (p *Pool) fillSizes(d *data, parts []intake.Part, keep bool) {
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

// listedSize returns the size of a part from the cache listing of any upstream; 0 is unknown. It is for parts that no
// job has needed before.
func (p *Pool) listedSize(part uint64) float64 {
	for _, m := range p.set[:min(len(p.set), sampleSize)] {
		if bytes := m.cached.listedBytes(part); bytes > 0 {
			return bytes
		}
	}
	return 0
}

// learnSizes stores the sizes of a job's parts that m's cache listing gives.
func (p *Pool) learnSizes(m *member, n *need) {
	n.project.listed = cmp.Or(n.data.listed, n.project.listed)
	for i := 0; n.data.set && i < len(n.data.parts); i++ {
		if bytes := m.cached.listedBytes(n.data.parts[i].Key); bytes > 0 {
			p.projects.find(n.data.parts[i].Key).listed = bytes
		}
	}
}

// IsHeavy reports whether a job is heavy. No job is heavy if all upstreams are for heavy jobs, or none is.
func (p *Pool) IsHeavy(r Request) bool {
	if !p.accepting.mixed || r.Project == 0 {
		return false
	}
	n, s := &p.scratch.need, &p.cfg.Heavy
	p.fillNeed(n, &r, false)
	size := n.total()
	length, _ := p.lengths.expected(n)
	if !n.data.set && plausibleBytes(r.Bytes) {
		size = r.Bytes
	}
	return p.heavy[r.Project] || p.heavy[n.project.id] ||
		s.Bytes > 0 && size >= float64(s.Bytes) ||
		s.Expected > 0 && length >= s.Expected.Seconds()
}
