package pool

import (
	"cmp"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/prompts"
	"example.org/pilotfish/internal/recent"
	"example.org/pilotfish/pkg/selection"
)

const (
	// In a pool of nearFrom upstreams, a claim considers the near ones, which are the first in the project's rendezvous
	// order. The project's data is rarely elsewhere: an upstream is chosen only if all upstreams before it in
	// this order cost more.
	nearFrom, near = 64, 32
	// In a pool of manyFrom upstreams, a claim that finds no free core near considers this many. Considering
	// more gains nothing and delays other jobs.
	manyFrom, many = 1024, 512
)

// projectState is what is known of one project. A job looks it up once, because the lookup seldom hits the processor's cache.
type projectState struct {
	id   uint64 // 0 for jobs without a project
	open int    // open assignments
	seen bool   // it had a job before, here or at an upstream

	answers               average // time to first byte where its data is cached
	length                average // duration of its jobs
	usual                 average // time to first byte without the slowness of upstreams
	listed, reportedBytes float64 // size of its data in cache listings and in jobs; 0 is unknown

	prefetched *prefetched // the last prefetch of its data, until a job has used it; nil is none

	near   *[near]uint16 // indexes of the near upstreams in the set, which discovery bounds to 10,000; nil is unknown
	nearOf uint64        // number of that set
}

// prefetched is when and where a prefetch loaded a project's data. A job there uses it if it arrives within usedWithin.
type prefetched struct {
	at time.Time
	by string
}

const usedWithin = time.Minute

// size is the size of the project's data; 0 is unknown. The size given by a job takes precedence over a listing's.
func (s *projectState) size() float64 {
	if s.reportedBytes > 0 {
		return s.reportedBytes
	}
	return s.listed
}

// projectStates holds the states of projects with open jobs and of the last ones that had jobs.
type projectStates struct{ *recent.Map[*projectState] }

func newProjectStates(limit int) projectStates {
	return projectStates{recent.NewMap(limit, func(s *projectState) bool { return s.open > 0 })}
}

// find returns the state of a project, or a new one, which it does not store.
func (p *projectStates) find(id uint64) *projectState {
	if s, ok := p.Get(id); ok {
		return s
	}
	return &projectState{id: id}
}

// state returns the state of a project. With keep, it is stored as the one that was used last.
func (p *projectStates) state(id uint64, keep bool) *projectState {
	s := p.find(id)
	if keep {
		p.Put(id, s)
	}
	return s
}

// need is what a job needs: the data of one project or of a set of projects, or a prompt.
//
// One part of a set places the job: the first that the job names. Policies see its key as the project, its rendezvous order,
// and in View.Cache whether it is cached. View.Warm is the cached share of all parts, by bytes if all sizes are known.
type need struct {
	named    *projectState // of the project that the job names, which counts its open jobs
	project  *projectState // of the part that places the job
	data     data
	prompt   *prompts.Prompt // nil is none
	priority selection.Priority
	length   uint64 // key of what was learned of the durations of jobs like it; 0 is none
	heavy    bool   // it goes to upstreams for heavy jobs if one is eligible
	prefetch bool   // it only loads the data: no durations are learned
}

// data is that of a project or of a set of projects.
type data struct {
	parts  []intake.Part  // of the set, or the project alone; Bytes are weights above 0
	one    [1]intake.Part // memory for the project alone
	set    bool
	bytes  float64 // sum of the weights
	size   float64 // of a set in bytes; 0 is unknown
	listed float64 // size of the project in a listing that was read for this job; 0 is unknown
}

// total is the size of the project or set in bytes; 0 is unknown.
func (n *need) total() float64 {
	if n.data.set {
		return n.data.size
	}
	return cmp.Or(n.project.reportedBytes, n.data.listed, n.project.listed)
}

// clone copies a need, whose memory the next claim reuses.
func (n *need) clone(to *need) {
	*to = *n
	if !n.data.set {
		to.data.parts = to.data.one[:len(n.data.parts)]
	}
}
