package dispatch

import (
	"container/list"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// Request is what a job says of itself, and when it came.
type Request struct {
	// ID and Facts name the job where open jobs are shown. Facts may be nil.
	ID    string
	Facts *intake.Facts
	// Project is a hash of the project's identifier, which is Name; 0 for none.
	Project  uint64
	Name     string
	Priority selection.Priority
	// Prefetch is set for a request that only loads the project's data. It does not wait, and has one attempt.
	Prefetch bool
	// Arrived is when the sidecar received the job.
	Arrived time.Time
	// Bytes is the size of the body, which is kept while the job waits.
	Bytes int64
	// Data is the parts of the project's data; nil is one. DataBytes is its size then, 0 where that is
	// not known.
	Data      *intake.Parts
	DataBytes float64
	// Among, if not nil, are the only upstreams that the job may go to. Such a job
	// does not wait.
	Among []string
	// Fallbacks asks for as many upstreams to try next as there may be retries.
	Fallbacks bool
	// Withdraw ends an attempt that waits at an upstream, so that it fails as
	// pool.Moved; nil if that cannot be done, or the job cannot be sent again.
	Withdraw Withdrawer
	// Queue, Evaluate and Stream are the job's own bounds on its wait, on its
	// processing until the first byte, and on its response; 0 is not given.
	Queue, Evaluate, Stream time.Duration
}

// Withdrawer is a job whose attempt can be ended from outside. Withdraw returns false if it
// is too late.
type Withdrawer interface{ Withdraw() bool }

// Job is one job on its way to its response, over all its attempts. The exported
// fields are set by Begin and do not change.
type Job struct {
	Request
	// FirstByte bounds each attempt until its response begins.
	FirstByte time.Duration
	// Deadline is the instant by which the job's response must have begun; zero is
	// none.
	Deadline time.Time

	among    *pool.Places // Among
	tried    pool.Places  // where it may not go now
	counted  bool         // for the retry budget
	attempts int          // how many attempts may have reached an upstream
	rounds   int          // how often all upstreams refused the connection
	sent     time.Time    // when the last attempt began
	panicked bool         // the last attempt went to an upstream although its breaker was open, like all

	to      *pool.Assignment // where it goes next, if it is being moved
	spent   bool             // the one retry of a job that an upstream may have begun is used up
	stale   bool             // the last attempt was lost on a pooled connection
	connect time.Duration    // for the next dial
	on      []int            // the statuses that are Unwanted

	place  *list.Element // in the queue; nil when it does not wait
	since  time.Time     // when the wait under way began
	until  time.Time     // and when it must end
	waited time.Duration // in waits and pauses that are over
}

// Tried implements pool.Waiter.
func (j *Job) Tried() *pool.Places { return &j.tried }

// GiveUpAt is when a job that waits must be given up.
func (j *Job) GiveUpAt() time.Time { return j.until }

// TimeLeft is how long an attempt that begins at now may take until its response
// begins. last is set where the job's deadline ends it.
func (j *Job) TimeLeft(now time.Time) (left time.Duration, last bool) {
	left = j.FirstByte
	if j.Deadline.IsZero() || j.Deadline.Sub(now) >= left {
		return left, false
	}
	return j.Deadline.Sub(now), true
}

// Late reports whether the job's deadline has passed.
func (j *Job) Late(now time.Time) bool { return !j.Deadline.IsZero() && !now.Before(j.Deadline) }

// TimedOut is the outcome of an attempt whose response did not begin in the time
// that it had left. Less than half of FirstByte is too short a time to speak
// against the upstream.
func (j *Job) TimedOut(left time.Duration) pool.Outcome {
	if left < j.FirstByte/2 {
		return pool.Gone
	}
	return pool.TimedOut
}

// Grant is how the wait of a job ended, which may have been none.
type Grant struct {
	Job *Job
	// Assignment is the job's place at an upstream, which the shell must end;
	// nil if Err says why there is none: pool.ErrAllTried, ErrFull, ErrDisplaced,
	// ErrAtLimit or ErrRate.
	Assignment *pool.Assignment
	Err        error
	// ConnectTimeout bounds the dial of the attempt.
	ConnectTimeout time.Duration
	// Fresh is set when the attempt must not use a pooled connection.
	Fresh bool
}
