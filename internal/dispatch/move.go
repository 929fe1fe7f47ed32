package dispatch

import (
	"time"

	"example.org/pilotfish/internal/pool"
)

// Reconsider returns the jobs whose attempts the caller must withdraw: their upstream became suspect, and another upstream is
// claimed for them. The caller must call it after every event. When the attempt fails with pool.Moved, Arrive returns the
// claimed upstream.
//
// A job is moved at most once. A move counts as an attempt and as a retry. It uses up the
// single retry of a job that an upstream may have begun.
func (d *Dispatcher) Reconsider(now time.Time) []*Job {
	moves := d.pool.Reconsider(now, func(w pool.Waiter) bool {
		j := ofThis(w)
		return j.state == claimed && !j.retries.spent && j.retries.attempts+1 < d.retry.Attempts && d.budget.take(now, d.retry.Budget)
	})
	moved := make([]*Job, len(moves))
	for i, m := range moves {
		j := ofThis(m.Job)
		j.to, j.state, j.retries.spent = m.To, moving, true
		j.retries.attempts++
		moved[i] = j
	}
	return moved
}

// Withdrawal is an attempt that its upstream should withdraw.
type Withdrawal struct {
	Job     *Job
	Address string
	Number  uint64 // of the claim
}

// Withdrawals returns the attempts for which the caller must send withdrawal requests to their upstreams: the jobs wait
// there, and another upstream is claimed for each. The caller must call it after every event. When the attempt fails with
// pool.Moved, Arrive returns the claimed upstream. If the upstream refuses or does not respond, the caller calls
// CancelWithdrawal.
//
// A job is asked for at most once. The upstream confirms that the job has not started, so the move counts neither as an attempt
// nor as a retry.
func (d *Dispatcher) Withdrawals(now time.Time) []Withdrawal {
	moves := d.pool.Withdrawals(now, func(w pool.Waiter) bool {
		j := ofThis(w)
		return j.state == claimed && !j.asked && d.retry.Attempts > 1
	})
	if len(moves) == 0 { // as for nearly every event
		return nil
	}
	asked := make([]Withdrawal, len(moves))
	for i, m := range moves {
		j := ofThis(m.Job)
		j.to, j.state, j.asked = m.To, asking, true
		asked[i] = Withdrawal{j, m.From, m.Number}
	}
	return asked
}

// CancelWithdrawal cancels the move of a job that its upstream did not withdraw.
func (d *Dispatcher) CancelWithdrawal(now time.Time, j *Job) {
	if j.state == asking {
		d.CancelMove(now, j)
	}
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
	if j.to != nil {
		j.to.Cancel(now)
		j.to, j.state = nil, claimed
	}
}
