package pool

import (
	"cmp"
	"time"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/prompts"
	"example.org/pilotfish/pkg/selection"
)

// Assignment is an open attempt: a job that is counted at an upstream. Its holder must call Answered when a response
// begins, and Done or Cancel once on every path.
type Assignment struct {
	Choice
	sent
	pool   *Pool
	member *member

	entry   health.Entry // at the breaker
	moved   bool         // a proxy retried the job here: when it arrived is unknown
	idle    bool         // a core was free when it was claimed
	stage   stage
	found   hit
	prefill *prompts.Prefill // nil if the job is no prompt
	run     run
}

// stage is the state of an assignment. It only moves down this list.
type stage uint8

const (
	// waiting: no response has begun. The job is in the member's unanswered.
	waiting stage = iota
	// answered: a response with a good status has begun. The breaker will also get the end of the response.
	answered
	// failing: a response has begun whose status counts as a failure.
	failing
	// ended: the job is no longer counted at the upstream.
	ended
)

// count counts the job at its upstream, until Done.
func (a *Assignment) count() {
	p, m := a.pool, a.member
	p.inFlight++
	m.load.claim(a.Claimed, a.priority)
	a.number = p.watch.Claimed(a.Claimed, &m.suspicion, p.cfg.Interval)
	m.unanswered.add(&a.sent)
	a.named.open++
	found, bytes := m.cached.lookUp(a.Claimed, &a.need, p.cfg.Interval)
	a.found, a.data.listed = found, cmp.Or(bytes, a.data.listed)
	a.Cache = a.found.status
	a.notePrefetch()
	m.cached.assume(a.Claimed, a.data.parts, p.cfg.Interval)
	if a.prompt != nil {
		a.prefill = m.cached.prompts.Send(a.Claimed, p.prompts, a.prompt)
	}
}

// Number is the number of the claim, which no other claim of the pool has.
func (a *Assignment) Number() uint64 { return a.number }

// run holds the times of a job's run.
type run struct {
	began   time.Time     // zero is unknown
	fetched time.Duration // the part of the run in which data was fetched
}

// notePrefetch remembers where a prefetch loads a project's data, and sets Prefetched for the first job that uses it.
func (a *Assignment) notePrefetch() {
	last := a.project.prefetched
	switch {
	case a.prefetch && a.Cache == selection.NotCached && a.project.id != 0:
		a.project.prefetched = &prefetched{a.Claimed, a.Address}
	case !a.prefetch && last != nil && last.by == a.Address:
		a.Prefetched = a.Cache != selection.NotCached && a.Claimed.Sub(last.at) <= usedWithin
		a.project.prefetched = nil
	}
}
