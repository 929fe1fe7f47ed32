package pool

import (
	"time"

	"example.org/pilotfish/internal/recent"
	"example.org/pilotfish/pkg/selection"
)

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

// placed is an upstream's place in the set, and its score for a project.
type placed struct {
	place uint16
	score float64
}

// projectState is what is known of one project. A job finds it once, since the memory of
// so many projects is seldom in the processor's cache.
type projectState struct {
	id   uint64 // 0 is that of jobs without a project
	open int    // assignments
	seen bool   // there was a job of it before, here or at an upstream

	answers      average // how long they take to begin where its data is cached
	lengths      average // how long its jobs take once they run
	usual        average // how long its answers take to begin, upstreams' slowness aside
	listed, told float64 // bytes of its data, by cache listings and by jobs; 0 is not known

	prefetched *prefetched // the last prefetch that loaded its data, until a job has used that; nil is none

	near   *[near]uint16 // places of the near upstreams in the set, which discovery bounds to 10,000; nil is not known
	nearOf uint64        // the number of that set
}

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

// find returns the state of a project. It changes nothing: where nothing is known, what
// it returns is kept nowhere.
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

// prefetched is when a prefetch loaded a project's data, and where. A job there within usedWithin has used it.
type prefetched struct {
	at time.Time
	by *member
}

const usedWithin = time.Minute

// notePrefetch notes what a prefetch loads, and whether a job is the first to use it. Its Cache must be known.
func (a *Assignment) notePrefetch() {
	last := a.project.prefetched
	switch {
	case a.prefetch && a.Cache == selection.NotCached && a.project.id != 0:
		a.project.prefetched = &prefetched{a.Claimed, a.member}
	case !a.prefetch && last != nil && last.by == a.member:
		a.Prefetched = a.Cache != selection.NotCached && a.Claimed.Sub(last.at) <= usedWithin
		a.project.prefetched = nil
	}
}
