package pool

import (
	"cmp"
	"slices"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/prompts"
	"example.org/pilotfish/pkg/selection"
)

// need is the data that a job needs: that of one project, of a set of projects, or a prompt.
//
// A set is weighed by its parts: the share of its bytes that an upstream has cached is View.Warm, or the share of its parts
// where sizes are not known. One part places the job: its key is the project that policies see, its place in the rendezvous
// order counts, and View.Cache tells whether it is cached. Of a set, it is the part that the job names first.
type need struct {
	named    *projectState // of the job's name, by which open jobs are counted
	project  *projectState // of the part that places it
	parts    []intake.Part // of a set, or the project alone; Bytes are above 0, and count beside each other
	set      bool
	heavy    bool            // it goes to upstreams for heavy jobs, if one is eligible
	prefetch bool            // it only loads the data: nothing is learned of how long jobs take
	prompt   *prompts.Prompt // nil is none
	bytes    float64         // of all parts
	size     float64         // of a set whose parts' sizes are all known; else 0
	listed   float64         // the size of a project by the listings that were looked at for this job; 0 is unknown
}

// need finds out about a job's data. keep remembers the job. What it returns is valid until the next call.
func (p *Pool) need(project uint64, data *intake.Parts, keep bool) *need {
	n := &p.needs // on the stack it would double that of each job
	*n = need{named: p.projects.state(project, keep), bytes: 1}
	n.project = n.named
	place := project
	switch {
	case project == 0:
	case data == nil:
		p.one[0] = intake.Part{Key: project, Bytes: 1}
		n.parts = p.one[:]
	case data.Set:
		n.parts, n.set, place = data.Parts, true, data.Parts[0].Key
		p.size(n, keep)
	default:
		n.prompt = p.prompts.Prompt(data.Parts)
		if place = n.prompt.Place; keep {
			p.prompts.Observe(n.prompt)
		}
	}
	if place != project {
		n.project = p.projects.state(place, keep)
	}
	return n
}

// size fills in the sizes of the parts of a set that listings have named. If one is unknown, all parts count the same.
func (p *Pool) size(n *need, keep bool) {
	p.parts = append(p.parts[:0], n.parts...)
	n.parts, n.bytes = p.parts, 0
	for i := range n.parts {
		state := p.projects.state(n.parts[i].Key, keep)
		size := state.size()
		if size == 0 {
			size = p.listedSize(n.parts[i].Key)
		}
		if keep {
			state.listed = cmp.Or(state.listed, size)
		}
		n.parts[i].Bytes = size
		n.bytes += size
	}
	n.size = n.bytes
	if slices.ContainsFunc(n.parts, func(part intake.Part) bool { return part.Bytes == 0 }) {
		for i := range n.parts {
			n.parts[i].Bytes = 1
		}
		n.bytes, n.size = float64(len(n.parts)), 0
	}
}

// listedSize is the size of a part where no job has needed it yet, as some listing tells it; 0 is unknown.
func (p *Pool) listedSize(part uint64) float64 {
	for _, m := range p.set[:min(len(p.set), many)] {
		if m.cached != nil && m.cached.Contains(part) && saneBytes(m.cached.Bytes(part)) {
			return m.cached.Bytes(part)
		}
	}
	return 0
}

// learnSizes remembers the sizes that listings tell of what a job needs that goes to m.
func (p *Pool) learnSizes(m *member, n *need) {
	n.project.listed = cmp.Or(n.listed, n.project.listed)
	for i := 0; n.set && m.cached != nil && i < len(n.parts); i++ {
		key := n.parts[i].Key
		if bytes := m.cached.Bytes(key); m.cached.Contains(key) && saneBytes(bytes) {
			p.projects.find(key).listed = bytes
		}
	}
}

// belief is the probability that data is there.
var belief = [...]float64{selection.NotCached: 0, selection.AssumedCached: 0.95, selection.Cached: 1}

// holds says what m has cached of the data: the part that places the job, the share of all, and how many parts before the
// first one that is missing. It changes nothing of the pool: the size of a project goes into n.
func (p *Pool) holds(now time.Time, m *member, n *need) (cache selection.Cache, warm float64, first int) {
	if n.prompt != nil {
		hit := m.prompts.Hit(now, n.prompt)
		switch {
		case hit.Reported:
			cache = selection.Cached
		case hit.Placed:
			cache = selection.AssumedCached
		}
		return cache, hit.Share, 0
	}
	listed := m.lists(now, &p.cfg)
	for i := range n.parts {
		part := &n.parts[i]
		here := m.has(part.Key, listed)
		if part.Key == n.project.id {
			cache = here
		}
		if here == selection.Cached && !n.set {
			if bytes := m.cached.Bytes(part.Key); saneBytes(bytes) {
				n.listed = bytes
			}
		}
		if first == i && here != selection.NotCached {
			first++
		}
		warm += belief[here] * part.Bytes
	}
	return cache, warm / n.bytes, first
}

// total is the size of a project or a set; 0 is not known.
func (n *need) total() float64 {
	if n.set {
		return n.size
	}
	return cmp.Or(n.project.told, n.listed, n.project.listed)
}

// take notes that the parts will be at m, as a job that needs them goes there. A part that is assumed
// to be there already was claimed before, which a listing may refute; without one it is used anew.
func (m *member) take(parts []intake.Part, now time.Time, cfg *Config) {
	listed := m.lists(now, cfg)
	for i := range parts {
		key := parts[i].Key
		if here := m.has(key, listed); here == selection.NotCached || here == selection.AssumedCached && m.cached == nil {
			m.assumed.Put(key, now)
		}
	}
}
