package dispatch

import (
	"time"

	"example.org/pilotfish/internal/pool"
)

// Failed decides whether a failed attempt is retried, and if so counts the retry.
// The caller must end the attempt's Assignment separately.
func (d *Dispatcher) Failed(now time.Time, j *Job, f Failure) Next {
	if j.state == moving && f.Outcome != pool.Gone && f.Progress != Responded && f.Repeatable ||
		j.state == withdrawing && f.Outcome == pool.Moved {
		return Next{Again: true, Claimed: true}
	}
	d.CancelMove(now, j)
	n := d.decide(now, j, f)
	if j.state = ended; n.Again {
		j.state = paused
	}
	return n
}

// decide is Failed for a job that is not moved.
func (d *Dispatcher) decide(now time.Time, j *Job, f Failure) Next {
	j.attempt.stale = f.Stale
	class := f.class()
	if f.ConnectTimedOut {
		class = d.unreached(now, j)
	}
	if class != refusal {
		j.retries.attempts++
	}
	switch {
	case j.retries.attempts >= d.retry.Attempts, d.retry.Attempts == 1,
		class == never,
		class == once && j.retries.spent,
		j.IsLate(now), j.Prefetch,
		!f.Repeatable:
		return Next{}
	case class == refusal:
		return d.refused(now, j, f)
	case !f.Blameless && !d.budget.take(now, d.retry.Budget):
		return Next{OverBudget: true}
	}
	j.retries.spent = j.retries.spent || class == once
	return Next{Again: true, Pause: d.pause(j.retries.attempts)}
}

// unreached returns the class of a connect timeout, and sets the timeout of the next dial. A
// connect timeout is treated as a refused connection while the job can still wait; after that,
// a retry counts as an attempt. If every upstream has been tried, the dial timeout is reset: a
// lone upstream is retried with the same timeout, because its accept queue may soon have room.
func (d *Dispatcher) unreached(now time.Time, j *Job) retryClass {
	all := d.pool.AllTried(now, &j.tried, j.heavy)
	j.wait.total += j.retries.connect
	if all {
		j.retries.connect = d.retry.ConnectTimeout
		return refusal
	}
	left := d.queueTimeout(j) - j.wait.total
	j.retries.connect = min(2*j.retries.connect, max(left/2, d.retry.ConnectTimeout))
	if left < 0 {
		return always
	}
	return refusal
}

// refused decides after a refused connection. No upstream has begun the job, and a
// retry elsewhere adds no load to the upstream that is down. So the retry counts
// neither as an attempt nor in the retry budget:
// the upstreams that are up can serve all jobs even if most upstreams are down.
// Its time counts as queue time, so queue.wait bounds the attempts.
// When all upstreams have refused, the job pauses and then tries all of them again:
// an upstream that restarts may be back. While all breakers are open, the job pauses
// after maxPanicRefusals refusals already.
func (d *Dispatcher) refused(now time.Time, j *Job, f Failure) Next {
	if !f.ConnectTimedOut {
		j.wait.total += now.Sub(j.attempt.sent)
	}
	if !d.pool.AllTried(now, &j.tried, j.heavy) && !(j.attempt.panicked && j.tried.Len() >= maxPanicRefusals) {
		return Next{Again: j.wait.total <= d.queueTimeout(j)}
	}
	if j.retries.attempts > 0 {
		return Next{} // an earlier attempt had a response, or may have begun the job
	}
	pause := d.draw(firstPause<<min(j.retries.rounds, 5), maxRefusedPause)
	if j.wait.total+pause > d.queueTimeout(j) {
		return Next{}
	}
	j.retries.rounds++
	j.wait.total += pause
	j.tried = pool.AddressSet{}
	return Next{Again: true, Pause: pause}
}

// maxPanicRefusals is the number of refused connections after which a job pauses while all breakers are open.
const maxPanicRefusals = 32

// Upper bounds of the random pauses.
const (
	firstPause      = 25 * time.Millisecond  // before the third attempt
	maxPause        = 250 * time.Millisecond // before any attempt
	maxRefusedPause = 800 * time.Millisecond // after all upstreams refused the connection
)

// pause returns the back-off after the given number of attempts. The second attempt is
// made at once, at another upstream. Later pauses are exponential with full jitter:
// random between 0 and 25 ms, 50 ms ... 250 ms.
func (d *Dispatcher) pause(attempts int) time.Duration {
	if attempts < 2 {
		return 0
	}
	return d.draw(firstPause<<min(attempts-2, 4), maxPause)
}

// draw returns a random pause between 0 and the smaller of longest and bound.
func (d *Dispatcher) draw(longest, bound time.Duration) time.Duration {
	return time.Duration(d.rng.Int64N(int64(min(longest, bound)) + 1))
}
