package dispatch

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// RetrySettings bounds the attempts of each job, and the retries of all jobs.
type RetrySettings struct {
	// Attempts is how many upstreams a job is sent to at most. 1 means no retries.
	// Otherwise an upstream that refuses the connection does not count, nor one that
	// takes none within 1 s while the job may still wait.
	Attempts int `yaml:"attempts"`
	// ConnectTimeout is how long a connection to an upstream may take. After it has
	// passed, the job's attempt elsewhere has twice the time, but not more than half of
	// what is left of queue.wait.
	ConnectTimeout time.Duration `yaml:"-"`
	// FirstByte is how long an attempt may take up to the first byte of its
	// response, where the job does not say.
	FirstByte time.Duration `yaml:"first_byte"`
	// Budget is the share of the jobs of the last 10 s that may be retried. Three
	// retries a second are always allowed.
	Budget float64 `yaml:"budget"`
	// On lists statuses from 500 to 599, such as [500, 502, 504], upon which a job goes to another
	// upstream, whatever its method. The job has been done there, so it must be one that can be
	// done twice. The last answer is passed on when no attempt may follow.
	On []int `yaml:"on"`
}

// DefaultRetry is the bounds of an empty file.
func DefaultRetry() RetrySettings {
	return RetrySettings{Attempts: 3, ConnectTimeout: time.Second, FirstByte: 5 * time.Minute, Budget: 0.2}
}

// Check reports what cannot be used.
func (s RetrySettings) Check(f *settings.Faults) {
	f.AtLeast("attempts", int64(s.Attempts), 1)
	f.Positive("connect_timeout", s.ConnectTimeout)
	f.Positive("first_byte", s.FirstByte)
	if !(s.Budget > 0 && s.Budget <= 1) { // in this form it refuses NaN too
		f.Add("budget", "%v is not a share above 0 and up to 1; attempts: 1 means no retries", s.Budget)
	}
	for i, status := range s.On {
		f.Within(fmt.Sprintf("on[%d]", i), status, 500, 599)
	}
}

// Begin takes in a new job, which keeps these bounds. Its deadline is the sum of its own
// timeouts, if it gives any. FirstByte stands for an evaluate timeout that is missing.
func (s RetrySettings) Begin(r Request) *Job {
	j := &Job{Request: r, connect: s.ConnectTimeout, on: s.On}
	if r.Among != nil {
		j.among = pool.NewPlaces(r.Among)
	}
	j.FirstByte = r.Queue + cmp.Or(r.Evaluate, s.FirstByte)
	if r.Queue+r.Evaluate+r.Stream > 0 {
		j.Deadline = r.Arrived.Add(j.FirstByte + r.Stream)
	}
	return j
}

// Unwanted reports whether a response with that status is no answer to j while another upstream
// may be tried.
func (j *Job) Unwanted(status int) bool { return slices.Contains(j.on, status) }

// Failure is an attempt that brought no response to pass on.
type Failure struct {
	// Outcome is how it ended for the upstream.
	Outcome pool.Outcome
	// Progress is how far it came.
	Progress Progress
	// Repeatable is set while the job can be sent again: its body is still
	// here, whole.
	Repeatable bool
	// ConnectTimedOut is set when the dial took longer than ConnectTimeout.
	ConnectTimedOut bool
	// ConnectionRefused is set when nothing listens at the upstream's address.
	ConnectionRefused bool
	// Stale is set when a pooled connection ended without a byte of a response. The
	// upstream may have closed it just as the job was sent.
	Stale bool
	// Closed is set when it ended so soon that the upstream must have closed it before the
	// job arrived. The retry then costs no retry budget, and the failure does not speak against the upstream.
	Closed bool
}

// Progress is how far an attempt came before it failed.
type Progress uint8

// The steps of an attempt.
const (
	// Unsent: no byte of the job can have reached the upstream.
	Unsent Progress = iota
	// Begun: the upstream may have begun the job.
	Begun
	// Heard: a byte of the response came.
	Heard
)

// Next is what follows a failed attempt.
type Next struct {
	// Again: the job may Arrive once more, when Pause is over. Without a Pause it must: a
	// place may be claimed for it.
	Again bool
	Pause time.Duration
	// OverBudget: it may not, because of the retry budget alone.
	OverBudget bool
}

// Failed decides whether a failed attempt is followed by another, and if so
// counts the retry. The attempt's Assignment must be ended apart from that.
func (d *Dispatcher) Failed(now time.Time, j *Job, f Failure) Next {
	if j.to != nil {
		if f.Outcome != pool.Gone && f.Progress != Heard && f.Repeatable {
			return Next{Again: true}
		}
		d.Stay(now, j)
	}
	j.stale = f.Stale
	class := f.class()
	if f.ConnectTimedOut {
		class = d.unreached(now, j)
	}
	if class != refusal {
		j.attempts++
	}
	switch {
	case j.attempts >= d.retry.Attempts, d.retry.Attempts == 1,
		class == never,
		class == once && j.spent,
		j.Late(now), j.Prefetch,
		!f.Repeatable:
		return Next{}
	case class == refusal:
		return d.refused(now, j, f)
	case !f.Closed && !d.budget.take(now, d.retry.Budget):
		return Next{OverBudget: true}
	}
	j.spent = j.spent || class == once
	return Next{Again: true, Pause: d.pause(j.attempts)}
}

// unreached is the class of a connection that took too long, and bounds the next. It is
// like one that was refused, but it has cost the job time: when it may wait no longer, it
// goes elsewhere only as after other failures. A lone upstream is asked again and again
// with the same time, because its queue of connections may soon have room.
func (d *Dispatcher) unreached(now time.Time, j *Job) retryClass {
	all := d.pool.AllTried(now, &j.tried)
	j.waited += j.connect
	if all {
		j.connect = d.retry.ConnectTimeout
		return refusal
	}
	left := d.patience(j) - j.waited
	j.connect = min(2*j.connect, max(left/2, d.retry.ConnectTimeout))
	if left < 0 {
		return always
	}
	return refusal
}

// patience is how long a job may wait in all.
func (d *Dispatcher) patience(j *Job) time.Duration {
	if j.Queue > 0 {
		return j.Queue
	}
	return d.queue.bounds.Wait
}

// refused is what follows a refused connection. Nothing can have begun, and to
// try another upstream is no load for the one that refused: such an attempt is
// free, so that a few upstreams that work serve the jobs of many that are down.
// Its time counts as waiting: queue.wait ends the job, however many upstreams are left.
// When all have refused, the job waits as it would if none were eligible, and then
// tries them anew: an upstream that restarts is away for less than that. While all breakers
// are open, all have refused other jobs already: then it waits after maxPanicRefusals.
func (d *Dispatcher) refused(now time.Time, j *Job, f Failure) Next {
	if !f.ConnectTimedOut {
		j.waited += now.Sub(j.sent)
	}
	if !d.pool.AllTried(now, &j.tried) && !(j.panicked && j.tried.Len() >= maxPanicRefusals) {
		return Next{Again: j.waited <= d.patience(j)}
	}
	if j.attempts > 0 {
		return Next{} // one of them has answered, or may have begun the job
	}
	pause := d.draw(firstPause<<min(j.rounds, 5), maxRefusedPause)
	if j.waited+pause > d.patience(j) {
		return Next{}
	}
	j.rounds++
	j.waited += pause
	j.tried = pool.Places{}
	return Next{Again: true, Pause: pause}
}

// retryClass says whether a failed attempt may be followed by another.
type retryClass uint8

const (
	never retryClass = iota
	// once: an upstream may have begun the job. Processing is pure, so it may
	// be repeated, but a job that kills upstreams must not go to all of them.
	once
	// always: no upstream can have begun it.
	always
	// refusal: there was no connection.
	refusal
)

func (f Failure) class() retryClass {
	switch {
	case f.Outcome == pool.NotStarted, // the upstream says so
		f.Outcome == pool.Failed: // it has answered, and may be asked for no other answer
		return always
	case f.Outcome == pool.Gone, f.Progress == Heard:
		return never
	case f.Progress == Begun:
		return once
	case f.Outcome == pool.Refused && !f.Stale:
		return refusal
	}
	return always
}

// maxPanicRefusals is how many upstreams may refuse a job before it pauses, while all breakers are open.
const maxPanicRefusals = 32

// The longest pause before the third attempt, before any, and before all
// upstreams that refused are asked anew.
const (
	firstPause      = 25 * time.Millisecond
	maxPause        = 250 * time.Millisecond
	maxRefusedPause = 800 * time.Millisecond
)

// pause is how long to wait after so many attempts: not at all before the
// second, which goes elsewhere. The later pauses are drawn between 0 and 25 ms,
// 50 ms ... 250 ms ("full jitter").
func (d *Dispatcher) pause(attempts int) time.Duration {
	if attempts < 2 {
		return 0
	}
	return d.draw(firstPause<<min(attempts-2, 4), maxPause)
}

// draw draws a pause of at most that long.
func (d *Dispatcher) draw(longest, bound time.Duration) time.Duration {
	return time.Duration(d.rng.Int64N(int64(min(longest, bound)) + 1))
}
