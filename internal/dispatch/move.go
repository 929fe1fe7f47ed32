package dispatch

import (
	"time"

	"example.org/pilotfish/internal/pool"
)

// Reconsider returns the jobs whose attempts the shell must withdraw: their upstream became
// suspect, and another upstream is claimed for them. The shell calls it after every event.
// When the attempt fails with pool.Moved, Arrive returns the claimed upstream.
//
// A job is moved at most once. A move counts as an attempt and as a retry. It uses up the
// single retry of a job that an upstream may have begun.
func (d *Dispatcher) Reconsider(now time.Time) []*Job {
	moves := d.pool.Reconsider(now, func(w pool.Waiter) bool {
		j := ofThis(w)
		return !j.retries.spent && j.retries.attempts+1 < d.retry.Attempts && d.budget.take(now, d.retry.Budget)
	})
	moved := make([]*Job, len(moves))
	for i, m := range moves {
		j := ofThis(m.Job)
		j.to, j.state, j.retries.spent = m.To, moving, true
		j.tried.Add(m.To.Address)
		j.retries.attempts++
		moved[i] = j
	}
	return moved
}

// ofThis returns the Job that the pool holds as a Waiter.
func ofThis(w pool.Waiter) *Job {
	j, ok := w.(*Job)
	if !ok {
		panic("BUG: dispatch: the pool holds a waiter that is not a *dispatch.Job")
	}
	return j
}

// CancelMove cancels the move of a job whose attempt could not be withdrawn in time.
func (d *Dispatcher) CancelMove(now time.Time, j *Job) {
	if j.state == moving {
		j.to.Cancel(now)
		j.to, j.state = nil, claimed
	}
}
