package dispatch

import (
	"time"

	"example.org/pilotfish/internal/pool"
)

// Reconsider returns the jobs whose attempts the shell must withdraw, because their upstream
// became suspect and they should go elsewhere. The shell calls it after every event. When the
// attempt fails as pool.Moved, the job arrives at its new place.
//
// A job is moved once at most. A move counts as an attempt and as a retry, and it is the one
// retry of a job that an upstream may have begun.
func (d *Dispatcher) Reconsider(now time.Time) []*Job {
	moves := d.pool.Reconsider(now, func(w pool.Waiter) bool {
		j := ofThis(w)
		return !j.spent && j.attempts+1 < d.retry.Attempts && d.budget.take(now, d.retry.Budget)
	})
	moved := make([]*Job, len(moves))
	for i, m := range moves {
		j := ofThis(m.Job)
		j.to, j.spent = m.To, true
		j.tried.Add(m.To.Address)
		j.attempts++
		moved[i] = j
	}
	return moved
}

// ofThis is the job behind what the pool knows of it.
func ofThis(w pool.Waiter) *Job {
	j, ok := w.(*Job)
	if !ok {
		panic("BUG: dispatch: the pool holds a job of somebody else")
	}
	return j
}

// Stay gives up the move of a job whose attempt was not withdrawn in time.
func (d *Dispatcher) Stay(now time.Time, j *Job) {
	if j.to != nil {
		j.to.Cancel(now)
		j.to = nil
	}
}
