package sim

import (
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
)

// Hedged requests, as in Laedge (Primorac et al. 2021; the thesis, 5.3): if another upstream is idle, a copy of the job is sent
// there. The copy that ends first gives the result, and the other copy is cancelled. A joblet that a cancelled copy has started
// runs to its end.

// hedge sends a copy of a job that was just sent to another upstream with a free core and no queue, if there is one.
func (w *world) hedge(j *job) {
	if !w.cfg.Sidecars.Hedge || j.ended || j.Prefetch || j.server == nil || j.twin != nil {
		return
	}
	var idle []string
	for _, s := range w.servers {
		if s != j.server && s.up && !s.drain && s.busy < s.cores && len(s.queue) == 0 {
			idle = append(idle, s.address)
		}
	}
	if len(idle) == 0 {
		return
	}
	a, err := j.side.pool.Claim(w.time(w.now), pool.Request{Project: j.project, Priority: j.Priority, Among: pool.NewAddressSet(idle)}, nil)
	if err != nil {
		return
	}
	twin := newJob(&j.Job, j.number)
	twin.side, twin.dispatch, twin.arrived, twin.twin, j.twin = j.side, j.dispatch, j.arrived, j, twin
	w.totals.Hedged++
	w.attempt(twin, dispatch.Grant{Assignment: a, ConnectTimeout: dispatch.DefaultRetry().ConnectTimeout})
}

// drop cancels one of the two copies of a hedged job.
func (w *world) drop(j *job, o pool.Outcome) {
	j.ended = true
	j.twin.twin, j.twin = nil, nil
	w.withdraw(j, o)
}

// withdraw ends the running attempt of a job, if there is one.
func (w *world) withdraw(j *job, o pool.Outcome) {
	if j.server != nil && j.server.holds(j) {
		j.server.abandon(j)
	}
	if j.assignment != nil {
		j.assignment.Done(w.time(w.now), o)
	}
}

// survives reports whether a job whose attempt failed has another copy. If so, the other copy replaces the job.
func (w *world) survives(j *job, o pool.Outcome) bool {
	twin := j.twin
	if twin == nil {
		return false
	}
	w.drop(j, o)
	j.side.jobs[j.dispatch] = twin
	return true
}
