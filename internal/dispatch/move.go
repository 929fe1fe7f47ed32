package dispatch

import (
	"time"

	"example.org/pilotfish/internal/pool"
)

// Reconsider returns the jobs whose attempts the caller must withdraw: their upstream became suspect, and another upstream is
// claimed for them. The caller must call it after every event. When the attempt fails with pool.Moved, Arrive returns the
// claimed upstream.
//
// A job is moved at most once. A move takes from the retry budget. Unless it is cancelled, it also counts as an attempt, and
// uses up the single retry of a job that an upstream may have begun.
func (d *Dispatcher) Reconsider(now time.Time) (moved []*Job) {
	d.pool.Reconsider(now, d.budget.left(now, d.retry.Budget), pool.Moves{
		May: func(w pool.Waiter) bool {
			j := dispatched(w)
			return j.state == claimed && !j.retries.spent && j.retries.attempts+1 < d.retry.Attempts
		},
		Moved: func(m pool.Move) {
			d.budget.take(now, d.retry.Budget)
			j := dispatched(m.Job)
			j.to, j.state, j.retries.spent = m.To, moving, true
			j.retries.attempts++
			moved = append(moved, j)
		},
	})
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
// The withdrawal of a job is requested at most once. The upstream confirms that the job has not started, so the move counts neither as an attempt
// nor as a retry.
func (d *Dispatcher) Withdrawals(now time.Time) (requests []Withdrawal) {
	d.pool.Withdrawals(now, pool.Moves{
		May: func(w pool.Waiter) bool {
			j := dispatched(w)
			return j.state == claimed && !j.withdrawalSent && d.retry.Attempts > 1
		},
		Moved: func(m pool.Move) {
			j := dispatched(m.Job)
			j.to, j.state, j.withdrawalSent = m.To, withdrawing, true
			requests = append(requests, Withdrawal{j, m.From, m.Number})
		},
	})
	return requests
}

// CancelWithdrawal cancels the move of a job that its upstream did not withdraw.
func (d *Dispatcher) CancelWithdrawal(now time.Time, j *Job) {
	if j.state == withdrawing {
		d.CancelMove(now, j)
	}
}

// dispatched returns the Job that the pool holds as a Waiter.
func dispatched(w pool.Waiter) *Job {
	j, ok := w.(*Job)
	if !ok {
		panic("BUG: dispatch: the pool holds a waiter that is not a *dispatch.Job")
	}
	return j
}

// CancelMove cancels the move of a job whose attempt could not be withdrawn in time.
func (d *Dispatcher) CancelMove(now time.Time, j *Job) {
	if j.to == nil {
		return
	}
	if j.state == moving { // it does not count
		j.retries.spent = false
		j.retries.attempts--
	}
	j.to.Cancel(now)
	j.to, j.state = nil, claimed
}
