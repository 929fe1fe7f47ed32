package job

import (
	"net/http"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
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

// End ends a job. attempt is pool.Answered for a response that was forwarded completely, pool.Truncated for one that the upstream
// aborted, pool.Gone if the submitter disconnected, and pool.Refused if the upstream sent none. err is the reason for the others.
func (b *Book) End(attempt pool.Outcome, err error) {
	r := &b.Record
	r.Fail(err)
	if attempt == pool.Answered {
		r.Completeness = intake.Complete
		if b.Lease != nil && b.tail != nil && b.cfg.Found != nil {
			if share, ok := b.cfg.Found(b.tail); ok {
				b.Lease.Found(share)
			}
		}
	}
	switch {
	case attempt == pool.Truncated:
		r.Outcome = intake.Truncated
	case attempt == pool.Gone:
		r.Outcome = intake.Gone
	case attempt == pool.Refused:
		r.Outcome = intake.NoAnswer
	case b.notStarted:
		attempt, r.Outcome = pool.NotStarted, intake.Failed
	case r.Status >= http.StatusInternalServerError:
		attempt, r.Outcome = pool.Failed, intake.Failed
	default:
		r.Outcome = intake.Answered
	}
	now := time.Now()
	b.done(now, attempt, err)
	r.Total = now.Sub(r.Arrived)
}

// Refuse ends a job without a response of an upstream, and returns the error response to send.
// If its status is record.StatusGone, the submitter has disconnected and nothing is sent.
func (b *Book) Refuse(err error) record.Problem {
	p := record.ProblemOf(err)
	p.ID = b.Record.ID
	r := &b.Record
	r.Fail(err)
	r.Status, r.Reason, r.Outcome, r.Shedding = p.Status, p.Reason, p.Outcome, p.Shedding
	b.done(time.Now(), pool.Gone, err)
	return p
}

// done ends the current attempt, if there is one.
func (b *Book) done(now time.Time, o pool.Outcome, err error) {
	lease := b.Lease
	if lease == nil {
		return
	}
	b.Lease = nil
	b.endAttempt(now, o, err)
	lease.Done(now, o)
}

// endAttempt records the end of the current attempt.
func (b *Book) endAttempt(now time.Time, o pool.Outcome, err error) {
	b.Record.EndAttempt(now, o, err)
	if err != nil && b.cfg.AttemptFailed != nil {
		b.cfg.AttemptFailed(b.Record.Attempt())
	}
}

// Close ends the current attempt and the job if End did not, as after a panic, and passes the record to the sinks.
func (b *Book) Close() {
	if b.Record.Total == 0 {
		now := time.Now()
		b.done(now, pool.Gone, nil)
		b.Record.Total = now.Sub(b.Record.Arrived)
	}
	for _, sink := range b.cfg.Sinks {
		sink(&b.Record)
	}
}
