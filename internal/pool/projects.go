package pool

import (
	"cmp"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/prompts"
	"example.org/pilotfish/internal/recent"
	"example.org/pilotfish/pkg/selection"
)

// learned is what a pool has learned from its jobs.
type learned struct {
	projects projectStates
	fetches  *fetchModel    // how long projects' data takes to fetch
	answers  average        // how long an answer takes to begin where it is cached
	lengths  lengths        // how long a job takes once it runs
	once     average        // of jobs whose project had not been seen
	prompts  *prompts.Model // what was learned from prompts
}

func newLearned() learned {
	return learned{
		projects: newProjectStates(learnedProjects),
		fetches:  newFetchModel(),
		answers:  average{mean: logOf(answerPrior), n: 1},
		lengths:  newLengths(),
		once:     average{mean: 0.5, n: 10},
		prompts:  prompts.NewModel(),
	}
}

// fetch is how long it is expected to take to fetch what a job needs, in seconds; of a set, the part that places it, as
// if that were all. The rest only tells where there is more of the set: jobs of other sets share it, and with all of it
// as the price jobs wait where they should go elsewhere.
func (l *learned) fetch(n *need) float64 {
	if n.prompt != nil {
		return l.prompts.ReadTime(n.prompt)
	}
	return l.fetches.expected(n.project.size())
}

const (
	// nearFrom is how many upstreams a pool must have before a claim looks at the near
	// ones alone, and near is how many are near: the first in the project's rendezvous
	// order. A project's data is hardly ever elsewhere, since upstreams further down
	// are taken only if all before them are dearer.
	nearFrom, near = 64, 32
	// manyFrom is how many upstreams a pool must have before a claim that finds no free core near by looks at many of
	// them, and not at all: more choice gains nothing, and takes time in which other jobs wait.
	manyFrom, many = 1024, 512
)

// projectState is what is known of one project. A job finds it once, since the memory of
// so many projects is seldom in the processor's cache.
type projectState struct {
	id   uint64 // 0 is that of jobs without a project
	open int    // assignments
	seen bool   // there was a job of it before, here or at an upstream

	answers      average // how long they take to begin where its data is cached
	length       average // how long its jobs take once they run
	usual        average // how long its answers take to begin, upstreams' slowness aside
	listed, told float64 // bytes of its data, by cache listings and by jobs; 0 is not known

	prefetched *prefetched // the last prefetch that loaded its data, until a job has used that; nil is none

	near   *[near]uint16 // places of the near upstreams in the set, which discovery bounds to 10,000; nil is not known
	nearOf uint64        // the number of that set
}

// prefetched is when a prefetch loaded a project's data, and at which address. A job there within usedWithin has used it.
type prefetched struct {
	at time.Time
	by string
}

const usedWithin = time.Minute

// size is the size of the project's data; 0 is not known. The size that a job told counts
// before that of a listing.
func (s *projectState) size() float64 {
	if s.told > 0 {
		return s.told
	}
	return s.listed
}

// projectStates holds the states of the projects that had jobs lately, and of those with open jobs.
type projectStates struct{ *recent.Map[*projectState] }

func newProjectStates(limit int) projectStates {
	return projectStates{recent.NewMap(limit, func(s *projectState) bool { return s.open > 0 })}
}

// find returns the state of a project. It changes nothing: where nothing is known, what it returns is kept nowhere.
func (p *projectStates) find(id uint64) *projectState {
	if s, ok := p.Get(id); ok {
		return s
	}
	return &projectState{id: id}
}

// state returns the state of a project. With keep, it is kept as one that was seen lately.
func (p *projectStates) state(id uint64, keep bool) *projectState {
	s := p.find(id)
	if keep {
		p.Put(id, s)
	}
	return s
}

// need is what a job needs: the data of one project, of a set of projects, or a prompt.
//
// A set is weighed by its parts: the share of its bytes that an upstream has cached is View.Warm, or the share of its parts
// where sizes are not known. One part places the job: its key is the project that policies see, its place in the rendezvous
// order counts, and View.Cache tells whether it is cached. Of a set, it is the part that the job names first.
type need struct {
	named    *projectState // of the job's name, by which open jobs are counted
	project  *projectState // of the part that places it
	data     data
	prompt   *prompts.Prompt // nil is none
	priority selection.Priority
	length   uint64 // key of what was learned of the durations of jobs like it; 0 is none
	heavy    bool   // it goes to upstreams for heavy jobs, if one is eligible
	prefetch bool   // it only loads the data: nothing is learned of how long jobs take
}

// data is that of a project, or of a set of projects.
type data struct {
	parts  []intake.Part  // of a set, or the project alone; Bytes are above 0, and count beside each other
	one    [1]intake.Part // the project alone
	set    bool
	bytes  float64 // of all parts
	size   float64 // of a set whose parts' sizes are all known; else 0
	listed float64 // the size of a project by the listings that were looked at for this job; 0 is unknown
}

// total is the size of a project or a set; 0 is not known.
func (n *need) total() float64 {
	if n.data.set {
		return n.data.size
	}
	return cmp.Or(n.project.told, n.data.listed, n.project.listed)
}

// clone copies a need to where it stays.
func (n *need) clone(to *need) {
	*to = *n
	if !n.data.set {
		to.data.parts = to.data.one[:len(n.data.parts)]
	}
}
