package proxy

import (
	"errors"
	"fmt"
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// attempts tries the job at one upstream after the other, until a response was
// passed on or no attempt may follow. The job's deadline, if it has one, bounds
// everything before the response begins. What is streamed has its own bounds, from
// the first byte.
func (x *exchange) attempts() error {
	var lost *failure // the attempt before
	var known lessons
	for {
		now, err := x.book.Claim(x.r.Context())
		if err != nil {
			if errors.Is(err, pool.ErrAllTried) && lost != nil {
				err = lost.err
			}
			return x.exhausted(known, err)
		}
		if lost, err = x.attempt(now, known.begun); lost == nil {
			return err
		}
		x.withdrawal.Reset() // nothing is withdrawn between two attempts
		known.add(lost)
		next := lost.next
		if !next.Again || next.Pause > 0 && !x.pause(next.Pause) { // without a pause a place may be claimed already
			return x.exhausted(known, lost.err)
		}
	}
}

// lessons are what the failed attempts of a job have shown.
type lessons struct {
	refused *refusal // the last unwanted response, or else the last that says that the job was not started
	begun   bool     // an upstream may have begun the job
	last    error    // why the last attempt brought no response
}

func (l *lessons) add(lost *failure) {
	l.begun = l.begun || lost.Progress == dispatch.Begun
	if errors.Is(lost.err, record.ErrNoAnswer) {
		l.last = lost.err
	}
	if lost.refusal != nil && (lost.refusal.done || l.refused == nil || !l.refused.done) {
		l.refused = lost.refusal
	}
}

// exhausted is the end of the attempts: the last response that an upstream
// refused the job with, if there is one, or else the reason why there is none.
// Where an upstream may have begun the job, a response that says that it was not
// started is not passed on: the submitter would send the job again.
func (x *exchange) exhausted(known lessons, err error) error {
	gone := x.r.Context().Err() != nil
	if gone {
		err = record.Gone(x.r.Context())
	}
	switch {
	case gone && known.begun && errors.Is(err, record.ErrShutdown): // whose answer says that the job may be sent again
		return fmt.Errorf("%w: %v", record.ErrNoAnswer, err) //nolint:errorlint // for that reason
	case gone:
		return err
	case known.refused != nil && (known.refused.done || !known.begun):
		return x.under.pass(known.refused.response, known.refused.body)
	case x.book.Job.Late(time.Now()):
		return record.ErrDeadline
	case known.begun:
		return known.last
	}
	return err
}

// pause waits before the next attempt, until the job's deadline at most. It reports whether
// the job may go on.
func (x *exchange) pause(d time.Duration) bool {
	if at := x.book.Job.Deadline; !at.IsZero() {
		d = min(d, time.Until(at))
	}
	select {
	case <-time.After(d):
	case <-x.r.Context().Done():
	}
	return x.r.Context().Err() == nil && !x.book.Job.Late(time.Now())
}
