package dispatch

import (
	"container/list"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// Request is a job's members, as read from its HTTP request, and its arrival time.
type Request struct {
	// ID and Facts identify the job in the admin list of open jobs. Facts can be nil.
	ID    string
	Facts *intake.Facts
	// Project is the hash of the project's identifier, 0 if the job has no project. Name is the identifier.
	Project  uint64
	Name     string
	Priority selection.Priority
	// Prefetch is set for a request that only loads the project's data. It is not queued and not retried.
	Prefetch bool
	// Arrived is when the sidecar received the job.
	Arrived time.Time
	// Bytes is the size of the body, which stays in memory while the job is queued.
	Bytes int64
	// Data lists the parts of the project's data; nil means one part, of DataBytes bytes. DataBytes is 0 if
	// the size is unknown.
	Data      *intake.Parts
	DataBytes float64
	// LengthKey is as in pool.Request.
	LengthKey uint64
	// Among, if not nil, restricts the job to the upstreams with these addresses. Such a
	// job is never queued.
	Among []string
	// Fallbacks requests alternative upstreams in the Assignment, one for each possible retry.
	Fallbacks bool
	// Withdraw aborts an attempt that still waits at an upstream; the attempt then fails with
	// pool.Moved. It is nil if the job cannot be aborted or cannot be sent again.
	Withdraw Withdrawer
	// Queue, Evaluate and Stream are the job's own timeouts: in the queue, from there to the
	// first byte of the response, and from the first byte to the last. 0 means not given.
	Queue, Evaluate, Stream time.Duration
}

// Withdrawer is a job whose attempt can be aborted. Withdraw returns false if it is too late,
// because the response has begun or the attempt has ended.
type Withdrawer interface{ Withdraw() bool }

// Job is one job over all its attempts. The exported fields are set by Begin and do not change.
//
//	          Arrive                   Reconsider, Withdrawals
//	+-------+ ---------------> +---------+ ---------------> +-------------+
//	| begun |                  | claimed |                  | moving,     |
//	+-------+ -+    +--------> +---------+ <--------------- | withdrawing |
//	    |      |    | Serve      ^  |  |   CancelMove,       +-------------+
//	    |      v    |            |  |  |   CancelWithdrawal,   |   |
//	    |   +---------+  Arrive  |  |  |   Arrive              |   |
//	    |   | waiting | <--+     |  |  | Failed                |   |
//	    |   +---------+    |     |  |  v                Failed |   |
//	    |        |        +--------+   |                       |   |
//	    |        |        | paused |<--+-----------------------+   |
//	    |        |        +--------+   |                           |
//	    v        v Serve,     |        v Failed                    |
//	+-------+    | GiveUp     |    (no retry)                      |
//	| ended | <--+------------+--------+---------------------------+
//	+-------+
//
// A job whose attempt succeeds stays claimed: the caller ends the assignment without the dispatcher.
type Job struct {
	Request
	// FirstByte is the timeout of each attempt, to the first byte of its response.
	FirstByte time.Duration
	// QueueTimeout is the longest time that the job may wait in all: its queue timeout, or else queue.wait.
	QueueTimeout time.Duration
	// Deadline is the instant by which the job's response must have begun; the zero
	// time means no deadline.
	Deadline time.Time

	state          state
	among          *pool.AddressSet // the upstreams of Request.Among
	tried          pool.AddressSet  // upstreams that must not be used again
	heavy          bool             // pool.IsHeavy at the last arrival
	to             *pool.Assignment // the new upstream of a job that is being moved; else nil
	withdrawalSent bool             // its withdrawal was requested
	wait           wait
	attempt        attempt
	retries        retries
}

// state is the state of a job; the comment of Job has the drawing.
type state uint8

const (
	// begun: the job has not arrived. It is not counted in the retry budget.
	begun state = iota
	// waiting: the job is in the queue. It has no assignment.
	waiting
	// claimed: the caller holds one assignment of the job, and ends it.
	claimed
	// moving: the caller withdraws the attempt. The job has a second assignment, at its new upstream, which waits
	// for Arrive or is cancelled.
	moving
	// withdrawing: the upstream got a request to withdraw the attempt. The job has a second assignment as in moving, but any other
	// end of the attempt cancels the move.
	withdrawing
	// paused: an attempt failed, and the job arrives again after a pause. It has no assignment and is not queued.
	paused
	// ended: the job has a final error. It has no assignment and is not queued.
	ended
)

// wait is how long a job waits in the queue.
type wait struct {
	place  *list.Element // position in its line; nil if not queued
	among  *list.Element // position among all queued jobs of its priority
	number uint64        // in the order of arrival in the queue
	since  time.Time     // start of the current wait
	until  time.Time     // latest end of the current wait
	total  time.Duration // of earlier waits and pauses
}

// attempt is the last attempt of a job.
type attempt struct {
	sent     time.Time // its start
	panicked bool      // it went to an upstream with an open breaker, because all breakers were open
	stale    bool      // it failed on a pooled connection before any byte of the response
}

// retries holds the bounds and the state of a job's retries.
type retries struct {
	attempts int           // attempts that may have reached an upstream
	rounds   int           // times that all upstreams refused the connection
	spent    bool          // the single retry after an upstream may have begun the job is used up
	connect  time.Duration // timeout of the next dial
	on       []int         // the statuses that are retried, from retry.on
}

// refuse ends the job with an error.
func (j *Job) refuse(err error) Grant {
	j.state = ended
	return Grant{Job: j, Err: err}
}

// sendTo starts an attempt at the claimed upstream.
func (j *Job) sendTo(now time.Time, a *pool.Assignment) Grant {
	j.state = claimed
	j.tried.Add(a.Address)
	j.attempt.sent, j.attempt.panicked = now, a.Panic
	return Grant{Job: j, Assignment: a, ConnectTimeout: j.retries.connect, Fresh: j.attempt.stale}
}

// Tried implements pool.Waiter.
func (j *Job) Tried() *pool.AddressSet { return &j.tried }

// request is the job as the pool's request.
func (j *Job) request() pool.Request {
	return pool.Request{
		Project: j.Project, Data: j.Data, Priority: j.Priority, Among: j.among, Bytes: j.DataBytes, LengthKey: j.LengthKey, Prefetch: j.Prefetch, Heavy: j.heavy,
	}
}

// GiveUpAt returns the time at which a queued job must be given up.
func (j *Job) GiveUpAt() time.Time { return j.wait.until }

// TimeLeft returns the time to first byte that is allowed to an attempt that starts now.
// last is true if the job's deadline is the bound, so no attempt can follow.
func (j *Job) TimeLeft(now time.Time) (left time.Duration, last bool) {
	left = j.FirstByte
	if j.Deadline.IsZero() || j.Deadline.Sub(now) >= left {
		return left, false
	}
	return j.Deadline.Sub(now), true
}

// IsLate reports whether the job's deadline has passed.
func (j *Job) IsLate(now time.Time) bool { return !j.Deadline.IsZero() && !now.Before(j.Deadline) }

// TimedOut returns the outcome of an attempt that got no response within left. The upstream
// is blamed only if left was at least half of FirstByte: less is too short to judge it.
func (j *Job) TimedOut(left time.Duration) pool.Outcome {
	if left < j.FirstByte/2 {
		return pool.Gone
	}
	return pool.TimedOut
}

// Grant is the result of a job's request for an upstream: an assignment or an error.
type Grant struct {
	Job *Job
	// Assignment is the job's claim on an upstream, which the caller must end. It is nil
	// if Err is set: pool.ErrAllTried, pool.ErrBusy, pool.ErrNoneEligible, ErrFull,
	// ErrDisplaced, ErrAtLimit or ErrRate.
	Assignment *pool.Assignment
	Err        error
	// ConnectTimeout is the dial timeout of the attempt.
	ConnectTimeout time.Duration
	// Fresh is set when the attempt must not use a pooled connection.
	Fresh bool
}
