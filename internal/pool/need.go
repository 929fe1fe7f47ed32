package pool

import (
	"slices"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/pkg/selection"
)

// need is the data that a job needs, in parts: those of a chain, of which an upstream can use what it
// holds from the beginning on, or those of a set. A single project is a chain of one part.
//
// What an upstream holds is a table of parts. From it comes the share of the job's bytes that is there
// (View.Warm), of a set whose sizes are not known that of its parts; the rest must be fetched.
//
// One part places the job: its hash is the project that policies see, its place in the
// rendezvous order counts, and View.Cache tells whether it is there. Jobs that share a beginning, such as
// a template, go on differently after it. The part after the deepest of these forks places the job.
// So the turns of one chat stay together, in all sidecars, and the chats of one template do not.
// Of a set, it is the part that the job names first.
type need struct {
	named   *projectState // of the job's name, by which open jobs are counted
	project *projectState // of the part that places it
	parts   []intake.Part // Bytes are above 0; they count beside each other
	model   *fetchModel   // how fetches of such data take as long as it is large
	set     bool
	text    bool    // a chain of blocks: its size is known
	bytes   float64 // of all parts
	size    float64 // the same if it is known of each; else 0
}

// maxForks bounds the parts that are remembered with what came after them: about 4 MB.
const maxForks = 1 << 17

// forked stands for several parts that came after one.
const forked = 1

// need finds out about a job's data. keep remembers the job. What it returns is valid until the next call.
func (p *Pool) need(project uint64, data *intake.Parts, keep bool) *need {
	n := &p.needs // on the stack it would double that of each job
	*n = need{named: p.projects.state(project, keep), model: p.fetches, bytes: 1}
	n.project = n.named
	if data != nil {
		n.parts, n.set = data.Parts, data.Set
	}
	at := 0 // the part that places it
	switch {
	case project == 0:
		n.parts = nil
	case data == nil:
		p.one[0] = intake.Part{Key: project, Bytes: 1}
		n.parts = p.one[:]
	case n.set:
		p.size(n, keep)
	default:
		n.text, n.model, n.bytes, at = true, p.texts, 0, p.place(n.parts, keep)
		for i := range n.parts {
			n.bytes += n.parts[i].Bytes
		}
		n.size = n.bytes
	}
	if len(n.parts) > 0 && n.parts[at].Key != project {
		n.project = p.projects.state(n.parts[at].Key, keep)
	}
	return n
}

// size fills in the sizes of the parts of a set, as far as listings told them. If one is not known, all
// count alike.
func (p *Pool) size(n *need, keep bool) {
	p.parts = append(p.parts[:0], n.parts...)
	n.parts, n.bytes = p.parts, 0
	for i := range n.parts {
		n.parts[i].Bytes = p.sizeOf(n.parts[i].Key, p.projects.state(n.parts[i].Key, keep))
		n.bytes += n.parts[i].Bytes
	}
	n.size = n.bytes
	if slices.ContainsFunc(n.parts, func(part intake.Part) bool { return part.Bytes == 0 }) {
		for i := range n.parts {
			n.parts[i].Bytes = 1
		}
		n.bytes, n.size = float64(len(n.parts)), 0
	}
}

// sizeOf is the size of a part; where no job has asked for it yet, as listings tell it.
func (p *Pool) sizeOf(part uint64, state *projectState) float64 {
	for i := 0; i < len(p.set) && state.size() == 0; i++ {
		if m := p.set[i]; m.cached != nil && m.cached.Contains(part) && saneBytes(m.cached.Bytes(part)) {
			state.listed = m.cached.Bytes(part)
		}
	}
	return state.size()
}

// place returns the part of a chain that follows the deepest fork: the first if there is none.
func (p *Pool) place(parts []intake.Part, keep bool) (at int) {
	for i := range parts[:len(parts)-1] {
		next := max(forked+1, uint32(parts[i+1].Key))
		after, came := p.forks.get(parts[i].Key)
		if came && after != next {
			at, next = i+1, forked
		}
		if keep {
			p.forks.put(parts[i].Key, next)
		} else if !came {
			break
		}
	}
	return at
}

// belief is the probability that data is there.
var belief = [...]float64{selection.NotCached: 0, selection.AssumedCached: 0.95, selection.Cached: 1}

// holds says what m has of the data: the status of the part that places the job, the share of all that is
// there, and how many parts are there from the first one on.
func (p *Pool) holds(now time.Time, m *member, n *need) (cache selection.Cache, warm float64, first int) {
	listed := m.lists(now, &p.cfg)
	for i := range n.parts {
		part := &n.parts[i]
		here := m.has(part.Key, listed, now)
		if part.Key == n.project.id {
			cache = here
		}
		if here == selection.NotCached {
			if n.set {
				continue
			}
			break
		}
		if here == selection.Cached {
			state := n.project
			if n.set {
				state = p.projects.find(part.Key)
			}
			if bytes := m.cached.Bytes(part.Key); saneBytes(bytes) {
				state.listed = bytes
			}
		}
		if first == i {
			first++
		}
		warm += belief[here] * part.Bytes
	}
	return cache, warm / n.bytes, first
}

// total is the size of all parts; 0 is not known.
func (n *need) total() float64 {
	if n.text || n.set {
		return n.size
	}
	return n.project.size()
}

// take notes that the parts will be at m, as a job that needs them goes there. A part that is assumed
// to be there already was claimed before, which a listing may refute; without one it is used anew.
func (m *member) take(parts []intake.Part, now time.Time, cfg *Config) {
	listed := m.lists(now, cfg)
	for i := range parts {
		key := parts[i].Key
		if here := m.has(key, listed, now); here == selection.NotCached || here == selection.AssumedCached && m.cached == nil {
			m.assumed.put(key, mark(now))
		}
	}
}
