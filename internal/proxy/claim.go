package proxy

import (
	"errors"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// attempts makes attempts until a response was forwarded or no retry is allowed.
// The job's deadline, if it has one, bounds the time up to the start of the response.
// The response itself has its own timeouts.
func (x *exchange) attempts() error {
	var known attemptSummary         // must be small: it is on the stack of each of the thousands of jobs that wait in Claim
	started := x.book.Record.Arrived // saves a read of the clock: microseconds ago, unless the job has waited since
	if x.paced.blocked > 0 || x.p.cfg.Prompt != nil {
		started = time.Now()
	}
	for ; ; started = time.Now() {
		now, err := x.book.Claim(x.r.Context(), started)
		if err != nil {
			if errors.Is(err, pool.ErrAllTried) && known.last != nil {
				err = known.last
			}
			return x.endAttempts(known, err)
		}
		v := x.attempt(now, &known)
		if v.kind == pass {
			return x.passOpen(v)
		}
		x.withdrawal.Reset() // nothing is withdrawn between two attempts
		known.add(v)
		if !v.next.Again || v.next.Pause > 0 && !x.pause(v.next.Pause) { // without a pause, an upstream may be claimed already
			return x.endAttempts(known, v.err)
		}
	}
}

// endAttempts ends the attempts. It forwards the kept response, if there is one, or
// returns the error that explains why there is none. If an upstream may have begun the
// job, a "not started" response is not forwarded: the submitter would send the job
// again.
func (x *exchange) endAttempts(known attemptSummary, err error) error {
	gone := x.r.Context().Err() != nil && !errors.Is(err, record.ErrSlow) // net/http ends the context of a slow upload
	if gone && x.paced.tooSlow(time.Now()) {
		return record.ErrSlow
	}
	if gone {
		err = record.Gone(x.r.Context())
	}
	switch {
	case gone && known.begun && errors.Is(err, record.ErrShutdown): // 503 would make the submitter send the job again
		return record.ErrAborted
	case gone:
		return err
	case known.kept != nil && (known.kept.upstreamRan() || !known.begun):
		return x.pass(known.kept.response, known.kept.body)
	case x.book.Job.IsLate(time.Now()):
		return record.ErrDeadline
	case known.begun:
		return known.noAnswer
	}
	return err
}

// pause waits before the next attempt, at most until the job's deadline. It returns false if the
// job has ended.
func (x *exchange) pause(d time.Duration) bool {
	if at := x.book.Job.Deadline; !at.IsZero() {
		d = min(d, time.Until(at))
	}
	select {
	case <-time.After(d):
	case <-x.r.Context().Done():
	}
	return x.r.Context().Err() == nil && !x.book.Job.IsLate(time.Now())
}
