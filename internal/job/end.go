package job

import (
	"net/http"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// Ending is how a response ended.
type Ending uint8

// The endings, a closed set.
const (
	// Whole: it was forwarded completely.
	Whole Ending = iota
	// Cut: the upstream aborted it.
	Cut
	// Left: the submitter disconnected.
	Left
	// None: the upstream sent none.
	None
)

// Unframed records that the response was ended by closing the connection, so a truncated response cannot be detected.
func (b *Book) Unframed() { b.Record.Unframed = true }

// tailBytes is the number of bytes kept from the end of a response, for jobs whose project has blocks.
const tailBytes = 1 << 10

// Wrote records a piece of the response body; n bytes of it were forwarded. It keeps the end of the body, for Config.Found.
func (b *Book) Wrote(piece []byte, n int) {
	b.Record.Bytes += int64(n)
	if data := b.Record.Facts.Data; data == nil || data.Set {
		return
	}
	if b.tail == nil {
		b.tail = make([]byte, 0, tailBytes)
	}
	if over := len(b.tail) + len(piece) - tailBytes; over > 0 {
		b.tail = b.tail[:copy(b.tail, b.tail[min(over, len(b.tail)):])]
		piece = piece[max(0, len(piece)-tailBytes):]
	}
	b.tail = append(b.tail, piece...)
}

// End ends a job with a response. err is the reason if the response is not Whole.
func (b *Book) End(how Ending, err error) {
	r := &b.Record
	r.Fail(err)
	attempt := pool.Answered
	switch {
	case how == Cut:
		attempt, r.Outcome = pool.Truncated, intake.Truncated
	case how == Left:
		attempt, r.Outcome = pool.Gone, intake.Gone
	case how == None:
		attempt, r.Outcome = pool.Refused, intake.NoAnswer
	case b.notStarted:
		attempt, r.Outcome = pool.NotStarted, intake.Failed
	case r.Status >= http.StatusInternalServerError:
		attempt, r.Outcome = pool.Failed, intake.Failed
	default:
		r.Outcome = intake.Answered
	}
	if how == Whole {
		r.Completeness = intake.Complete
		if b.Lease != nil && b.tail != nil && b.cfg.Found != nil {
			if share, ok := b.cfg.Found(b.tail); ok {
				b.Lease.Found(share)
			}
		}
	}
	b.done(attempt, err)
}

// Refuse ends a job without a response of an upstream, and returns the error response to send.
// If its status is record.StatusGone, the submitter has disconnected and nothing is sent.
func (b *Book) Refuse(err error) record.Problem {
	p := record.ProblemOf(err)
	p.ID = b.Record.ID
	r := &b.Record
	r.Fail(err)
	r.Status, r.Reason, r.Outcome, r.Shedding = p.Status, p.Reason, p.Outcome, p.Shedding
	b.done(pool.Gone, err)
	return p
}

// done ends the current attempt, if there is one.
func (b *Book) done(o pool.Outcome, err error) {
	lease := b.Lease
	if lease == nil {
		return
	}
	now := time.Now()
	b.Lease = nil
	b.Record.EndAttempt(now, o, err)
	lease.Done(now, o)
}

// Close ends the current attempt if necessary, as after a panic, and passes the record to the sinks.
func (b *Book) Close() {
	b.done(pool.Gone, nil)
	b.Record.Total = time.Since(b.Record.Arrived)
	for _, sink := range b.cfg.Sinks {
		sink(&b.Record)
	}
}
