package sim

import (
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// Impatient people: a person whose job has no response after Sidecars.Leave cancels it and submits it again, up to Sidecars.Again
// times (N. J. Turner's thesis, 2.4 and 4.5). A joblet that the cancelled job has started runs to its end. The measured wait counts
// from the first submission.

// lose schedules the cancellation of a job by its impatient person.
func (w *world) lose(j *job) {
	c := &w.cfg.Sidecars
	if c.Leave == 0 || j.Priority != selection.High || j.Prefetch {
		return
	}
	w.events.Add(w.now+c.Leave, rankTimeout, func() {
		if j.ended || j.answering >= 0 {
			return
		}
		w.withdraw(j, pool.Gone)
		j.side.dispatch.CancelMove(w.time(w.now), j.dispatch)
		j.side.dispatch.GiveUp(j.dispatch)
		if j.tries >= c.Again {
			w.end(j, Left)
			return
		}
		j.ended = true
		if j.twin != nil {
			w.drop(j.twin, pool.Gone)
		}
		delete(j.side.jobs, j.dispatch)
		again := newJob(&j.Job, j.number)
		again.tries, again.earlier = j.tries+1, j.earlier+w.now-j.arrived
		j.side.submit(w, again)
	})
}
