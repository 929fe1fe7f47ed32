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
	// In a pool of at least shortlistFrom upstreams, a claim considers only the project's shortlist: the first
	// shortlistSize upstreams in its rendezvous order. Few projects have data elsewhere, because an upstream is chosen
	// only if all upstreams before it in this order cost more.
	shortlistFrom, shortlistSize = 64, 32
	// In a pool of at least sampleFrom upstreams, a claim that finds no free core on the shortlist considers sampleSize
	// upstreams. Larger samples do not improve the choice, and the work would delay other jobs.
	sampleFrom, sampleSize = 1024, 512
)

// projectState is the state of one project. Each job looks it up only once, because the lookup is usually a miss in the
// processor's cache.
type projectState struct {
	id   uint64 // 0 for jobs without a project
	open int    // open assignments
	seen bool   // not new: it had a job from this sidecar, or its data was at an upstream

	firstByte             average // time to first byte where its data is cached
	duration              average // duration of its jobs
	adjustedFirstByte     average // time to first byte, corrected for slow upstreams (see slowness)
	listed, reportedBytes float64 // size of its data according to cache listings and to jobs; 0 is unknown

	prefetched *prefetched // the last prefetch of its data, until a job has used it; nil is none

	shortlist    *[shortlistSize]uint16 // indexes in the set, which discovery bounds to 10,000; nil is unknown
	shortlistSet uint64                 // number of the set to which the indexes belong
}

// size is the size of the project's data; 0 is unknown. The size given by a job takes precedence over a listing's.
func (s *projectState) size() float64 {
	if s.reportedBytes > 0 {
		return s.reportedBytes
	}
	return s.listed
}

// projectStates holds the states of the projects with open jobs, and of those that most recently had jobs.
type projectStates struct{ *recent.Map[*projectState] }

func newProjectStates(limit int) projectStates {
	return projectStates{recent.NewMap(limit, func(s *projectState) bool { return s.open > 0 })}
}

// find returns the state of a project, or a new state, which it does not store.
func (p *projectStates) find(id uint64) *projectState {
	if s, ok := p.Get(id); ok {
		return s
	}
	return &projectState{id: id}
}

// state returns the state of a project. With keep, it stores the state as the most recently used.
func (p *projectStates) state(id uint64, keep bool) *projectState {
	s := p.find(id)
	if keep {
		p.Put(id, s)
	}
	return s
}

// need describes the data that a job needs: that of one project or of a set of projects, or a prompt.
//
// The first project of a set places the job: policies see its key as the project, so its rendezvous order and its cache
// status (View.Cache) count. View.Warm is the cached share of the whole set, by bytes if all sizes are known.
type need struct {
	named     *projectState // of the project that the job names, which counts its open jobs
	project   *projectState // of the part that places the job
	data      data
	prompt    *prompts.Prompt // nil is none
	priority  selection.Priority
	lengthKey uint64 // key of the project and its length key, for learned durations; 0 means none
	heavy     bool   // the job is heavy: it goes to an upstream for heavy jobs if one is eligible
	prefetch  bool   // the job only loads the data, so no duration is learned from it
	healthy   bool   // the job waits at an upstream already, so it goes only to a healthy one
}

// data is the data of a project or of a set of projects.
type data struct {
	parts  []intake.Part  // the projects of the set, or the only project; their Bytes are weights above 0
	one    [1]intake.Part // memory for parts if there is only one
	set    bool
	bytes  float64 // sum of the weights
	size   float64 // size of a set in bytes; 0 is unknown
	listed float64 // size of the project in a cache listing that was read for this job; 0 is unknown
}

// total is the size of the project or set in bytes; 0 is unknown.
func (n *need) total() float64 {
	if n.data.set {
		return n.data.size
	}
	return cmp.Or(n.project.reportedBytes, n.data.listed, n.project.listed)
}

// clone returns a copy that stays valid when the next claim reuses the memory.
func (n *need) clone(to *need) {
	*to = *n
	if !n.data.set {
		to.data.parts = to.data.one[:len(n.data.parts)]
	}
}

// prefetched records when and where a prefetch loaded a project's data. A job that is sent there within usedWithin
// counts as using it.
type prefetched struct {
	at time.Time
	by string
}

const usedWithin = time.Minute
