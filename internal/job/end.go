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
	// Whole: it was passed on to its end.
	Whole Ending = iota
	// Cut: the upstream cut it short.
	Cut
	// Left: the submitter left.
	Left
	// None: the upstream brought none, and somebody else answered the submitter.
	None
)

// Unframed notes that the response ended with its connection: nothing shows whether the upstream had more to send.
func (b *Book) Unframed() { b.Record.Unframed = true }

// End ends the job by how its response ended; err says why that is not the whole.
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
		if share, ok := found(b.tail); ok && b.Lease != nil {
			b.Lease.Found(share)
		}
	}
	b.done(attempt, err)
}

// Refuse ends a job that gets no response of an upstream, and returns what to answer; a
// submitter that left gets nothing.
func (b *Book) Refuse(err error) record.Problem {
	p := record.ProblemOf(err)
	p.ID = b.Record.ID
	r := &b.Record
	r.Fail(err)
	r.Status, r.Reason, r.Outcome, r.Shedding = p.Status, p.Reason, p.Outcome, p.Shedding
	b.done(pool.Gone, err)
	return p
}

// done ends the attempt under way, if there is one.
func (b *Book) done(o pool.Outcome, err error) {
	lease, now := b.Lease, time.Now()
	if lease == nil {
		return
	}
	b.Lease = nil
	b.Record.EndAttempt(now, o, err)
	lease.Done(now, o)
}

// Close ends what has not ended, as where a panic passes, and hands the record to the sinks.
func (b *Book) Close() {
	b.done(pool.Gone, nil)
	b.Record.Total = time.Since(b.Record.Arrived)
	for _, sink := range b.cfg.Sinks {
		sink(&b.Record)
	}
}
