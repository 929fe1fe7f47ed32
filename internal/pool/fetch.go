package pool

import (
	"time"

	"example.org/pilotfish/pkg/selection"
)

// learn learns the fetch time from a response that has begun.
func (a *Assignment) learn(now time.Time, h *Hint) {
	if a.project.id == 0 {
		return
	}
	took, ok := a.fetchTime(now, h)
	usual := a.pool.firstBytes.expected(a.project.firstByte, shrinkFirstBytes)
	switch {
	case a.prefill != nil: // a prompt: the response starts when the prompt has been read
		a.prefill.Learn(now, usual)
		a.run.fetched = now.Sub(a.run.began)
	case ok:
		missing := 1 - a.found.share
		if h != nil && h.Known {
			missing = 1
		}
		a.pool.fetches.observe(a.total(), took/missing, usual)
	}
}

// fetchTime returns by how much the fetch delayed the response: the time to first byte, minus the wait for a core,
// minus the project's usual time to first byte where its data is cached. It is negative if the response began earlier
// than usual. It exceeds the fetch itself, because results that were computed from the data must be computed again. If
// the upstream does not report the wait, ok is true only for jobs that found a free core.
//
// The fetch time that the upstream reports is not used, because it does not include the results that must be computed
// again. If fetches are underestimated in this way, too many jobs go where their data is missing, and an overloaded
// pool stays overloaded.
func (a *Assignment) fetchTime(now time.Time, h *Hint) (took float64, ok bool) {
	ran, cold := now.Sub(a.Claimed), a.Cache == selection.NotCached
	switch {
	case h != nil && h.Known && h.Waited >= 0 && h.Waited <= ran:
		a.run.began = a.Claimed.Add(h.Waited)
		ran, cold = ran-h.Waited, !h.Cached
	case !a.idle:
		return 0, false
	default:
		a.run.began = a.Claimed
	}
	answers := &a.pool.firstBytes
	if !cold {
		answers.learn(&a.project.firstByte, ran, recentOfProject)
		a.pool.compareTimes(a.member, &a.project.adjustedFirstByte, ran)
		return 0, false
	}
	took = ran.Seconds() - answers.expected(a.project.firstByte, shrinkFirstBytes)
	a.run.fetched = max(0, seconds(took))
	return took, true
}

// dropAssumed drops the assumption that the job's data is cached there: for all parts, or only for those that were not
// cached before the job.
func (a *Assignment) dropAssumed(all bool) {
	from := int(a.found.leading)
	if all {
		from = 0
	}
	if a.prefetch {
		a.project.prefetched = nil
	}
	if a.Claimed.Before(a.member.again) { // the upstream has restarted: the assumption is gone already
		return
	}
	for _, part := range a.data.parts[from:] {
		a.member.cached.assumed.Drop(part.Key)
	}
	if a.prefill != nil {
		a.prefill.Missed(all)
	}
}
