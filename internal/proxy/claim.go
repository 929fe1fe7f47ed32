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
// everything before the response begins. A response that is streamed has its own
// bounds, from the first byte.
func (x *exchange) attempts() error {
	var known lessons // small, as all that is on the stack while thousands of jobs wait in Claim
	for {
		now, err := x.book.Claim(x.r.Context())
		if err != nil {
			if errors.Is(err, pool.ErrAllTried) && known.last != nil {
				err = known.last
			}
			return x.exhausted(known, err)
		}
		v := x.attempt(now, known.begun)
		if v.kind == pass {
			return x.passOpen(v)
		}
		x.withdrawal.Reset() // nothing is withdrawn between two attempts
		known.add(v)
		if !v.next.Again || v.next.Pause > 0 && !x.pause(v.next.Pause) { // without a pause a place may be claimed already
			return x.exhausted(known, v.err)
		}
	}
}

// lessons are what the failed attempts of a job have shown.
type lessons struct {
	begun    bool     // an upstream may have begun the job
	kept     *verdict // the last unwanted response, or else the last that says that the job was not started; nil without
	last     error    // why the last attempt failed
	noAnswer error    // why the last attempt that an upstream failed brought no response
}

func (l *lessons) add(v *verdict) {
	l.begun = l.begun || v.Progress == dispatch.Begun
	if l.last = v.err; errors.Is(v.err, record.ErrNoAnswer) {
		l.noAnswer = v.err
	}
	if v.kind == keep && (v.done() || l.kept == nil || !l.kept.done()) {
		l.kept = v
	}
}

// exhausted is the end of the attempts: the response that was kept, if there is
// one, or else the reason why there is none. Where an upstream may have begun the
// job, a response that says that it was not started is not passed on: the submitter
// would send the job again.
func (x *exchange) exhausted(known lessons, err error) error {
	gone := x.r.Context().Err() != nil && !errors.Is(err, record.ErrSlow) // net/http ends the context of a slow upload
	if gone {
		err = record.Gone(x.r.Context())
	}
	switch {
	case gone && known.begun && errors.Is(err, record.ErrShutdown): // its problem says that the job may be sent again
		return fmt.Errorf("%w: %v", record.ErrNoAnswer, err) //nolint:errorlint // for that reason
	case gone:
		return err
	case known.kept != nil && (known.kept.done() || !known.begun):
		return x.pass(known.kept.response, known.kept.body)
	case x.book.Job.Late(time.Now()):
		return record.ErrDeadline
	case known.begun:
		return known.noAnswer
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
