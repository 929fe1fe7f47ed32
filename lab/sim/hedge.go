package sim

import (
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
)

// Hedged requests, as Laedge sends them (Primorac et al. 2021; the thesis, 5.3): while an upstream is idle enough, a copy of
// a job goes there too, and the one that ends first is the job. The other is withdrawn. What a copy has begun runs on to the end
// of its joblet.

// hedge sends a copy of a job that was just sent, if another upstream has a free core and no queue.
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
	a, err := j.side.pool.Claim(w.time(w.now), pool.Request{Project: j.project, Priority: j.Priority, Among: pool.NewPlaces(idle)}, nil)
	if err != nil {
		return
	}
	twin := newJob(&j.Job, j.number)
	twin.side, twin.dispatch, twin.arrived, twin.twin, j.twin = j.side, j.dispatch, j.arrived, j, twin
	w.totals.Hedged++
	w.attempt(twin, dispatch.Grant{Assignment: a, ConnectTimeout: dispatch.DefaultRetry().ConnectTimeout})
}

// drop withdraws a copy, or the job that a copy takes the place of.
func (w *world) drop(j *job, o pool.Outcome) {
	j.ended = true
	j.twin.twin, j.twin = nil, nil
	w.withdraw(j, o)
}

// withdraw ends the attempt of a job, if one is under way.
func (w *world) withdraw(j *job, o pool.Outcome) {
	if j.server != nil && j.server.holds(j) {
		j.server.abandon(j)
	}
	if j.assignment != nil {
		j.assignment.Done(w.time(w.now), o)
	}
}

// survives lets the copy of a job whose attempt failed go on as the job, and reports whether there is one.
func (w *world) survives(j *job, o pool.Outcome) bool {
	twin := j.twin
	if twin == nil {
		return false
	}
	w.drop(j, o)
	j.side.jobs[j.dispatch] = twin
	return true
}
