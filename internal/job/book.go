// Package job keeps the book of a job: its record and its lease, from the job's arrival to
// its end. Whoever carries the job's bytes writes into the book what happens. Its methods
// come in this order:
//
//	Open > Body > Describe > Begin > (Claim > Failed)... > Claim > Head > Wrote... > Trailer > Unframed > End > Close
//
// Refuse may take the place of End. Close ends everything, on every path.
package job

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

// Book is that of one job, for the goroutine that carries the job. A zero one is not open.
type Book struct {
	// Record is what happened so far.
	Record record.Job
	// Job is what the dispatcher knows of the job; nil before Begin.
	Job *dispatch.Job
	// Lease is that of the attempt under way; nil where there is none.
	Lease *balancer.Lease

	cfg        *Config
	id         [1]string // the job's, as the value of a header
	header     http.Header
	tail       []byte // of the answer's body, where the job has a text
	notStarted bool   // the upstream that responded has done nothing for the job
	expects    bool   // what its header says of how long it takes is pilotfish's own
}

// Open begins the book of a request that arrives now. peer is the other end of its connection.
func (b *Book) Open(cfg *Config, now time.Time, h intake.Head, peer string) {
	b.cfg, b.header = cfg, h.Header
	b.id[0] = intake.ID(h.Header.Get("X-Request-Id"), h.Header.Get("Traceparent"))
	r := &b.Record
	r.ID, r.Arrived, r.Outcome = b.id[0], now, intake.Broken
	r.Method, r.Path, r.Peer = h.Method, h.Path, peer
}

// Body notes the size of the request's body, in bytes, -1 unknown, and whether it is kept for retries.
func (b *Book) Body(size int64, kept bool) { b.Record.Body, b.Record.Unkept = size, !kept }

// Describe reads what the job says of itself. body is the whole body, or its beginning.
func (b *Book) Describe(body []byte, whole bool) error {
	d, err := b.cfg.Reader.Describe(intake.Head{Method: b.Record.Method, Path: b.Record.Path, Header: b.header}, body, whole)
	b.Record.Facts, b.Record.Read, b.Record.Unread = d.Facts, d.Reading, d.Unread
	if err != nil {
		return fmt.Errorf("%w: %w", record.ErrMalformed, err)
	}
	if b.cfg.Body != nil && whole {
		b.cfg.Body(&b.Record, b.header, body)
	}
	return nil
}

// Request adds to the header of a request what upstreams get from pilotfish. Where to is not
// the request's own header, it gets only what is added.
func (b *Book) Request(own, to http.Header) {
	b.identify(own, to)
	if _, asks := own[askLoadHeader]; b.cfg.AskLoad && !asks {
		to[askLoadHeader] = []string{"text"}
	}
	if b.cfg.Trace == nil {
		return
	}
	if b.Record.Span = b.cfg.Trace(b.Record.Arrived, own); b.Record.Span != nil {
		to["Traceparent"] = own["Traceparent"]
	}
}

// askLoadHeader asks an upstream for a load report in a form of ORCA: text, json or bin.
const askLoadHeader = "Endpoint-Load-Metrics-Format"

// identify adds the job's identifier where there is no other.
func (b *Book) identify(own, to http.Header) {
	if _, named := own["X-Request-Id"]; !named {
		to["X-Request-Id"] = b.id[:]
	}
}

// Begin takes the job in. The request has what is not in the job's description, and its Project if the limit
// of projects counts the job by another one than its own; Name is that one's.
func (b *Book) Begin(r dispatch.Request) {
	f := &b.Record.Facts
	if r.Prefetch = f.Prefetch; f.Prefetch {
		f.Priority, r.Withdraw, r.Fallbacks = selection.High, nil, false
	}
	r.ID, r.Facts = b.Record.ID, f
	if r.Data = f.Data; r.Project == 0 || f.Key == 0 {
		r.Project, r.Name = f.Key, f.Project
	} else if r.Data == nil {
		r.Data = &intake.Parts{Parts: []intake.Part{{Key: f.Key}}, Set: true}
	}
	r.DataBytes, r.Priority, r.Arrived = f.Bytes, f.Priority, b.Record.Arrived
	r.Queue, r.Evaluate, r.Stream = f.Queue, f.Evaluate, f.Stream
	b.Job = b.cfg.Claimer.Begin(r)
}

// Claim waits for an upstream, and begins an attempt there. It returns when that is.
func (b *Book) Claim(ctx context.Context) (now time.Time, err error) {
	started := time.Now()
	lease, err := b.cfg.Claimer.Claim(ctx, started, b.Job)
	if err != nil {
		b.Record.Queued += time.Since(started)
		switch {
		case ctx.Err() != nil:
			err = record.Gone(ctx)
		case errors.Is(err, context.DeadlineExceeded):
			err = record.ErrDeadline
		}
		return started, err
	}
	now = started // of a job that is moved, too: its place was claimed before
	if lease.Claimed.After(now) {
		now = lease.Claimed
		b.Record.Queued += now.Sub(started)
	}
	b.Lease = lease
	b.Record.Begin(now, lease.Choice)
	return now, nil
}

// Expect adds to the header of an attempt how many seconds the job will probably take at its place, if that is
// known and its submitter has not said it. own and to are as in Request.
func (b *Book) Expect(own, to http.Header) {
	name, seconds := b.cfg.ExpectedHeader, b.Lease.Expected
	if name == "" || seconds <= 0 || len(own[name]) > 0 && !b.expects {
		return
	}
	to[name], b.expects = []string{strconv.FormatFloat(seconds, 'f', 3, 64)}, true
}

// Move takes the lease to another upstream, as the attempt before has failed.
func (b *Book) Move(now time.Time, address string, err error) {
	b.Record.EndAttempt(now, pool.Refused, err)
	b.Lease.Move(now, address)
	b.Record.Begin(now, b.Lease.Choice)
}

// Failed ends an attempt that brought no response to pass on, and returns what follows.
func (b *Book) Failed(f dispatch.Failure, err error) dispatch.Next {
	now, lease := time.Now(), b.Lease
	b.Lease = nil
	b.Record.EndAttempt(now, f.Outcome, err)
	next := lease.Failed(now, f)
	b.Record.RetryRefused = !next.Again && next.OverBudget
	return next
}

// Head notes that the response that is passed on begins now: the upstream's breaker learns
// of it now, not hours later at its end. Without a lease it is the response of an attempt
// that has ended.
func (b *Book) Head(now time.Time, status int, h http.Header) {
	b.Record.TTFB = now.Sub(b.Record.Arrived)
	b.Record.Status = status
	b.notStarted = record.NotStarted(status, h)
	if b.Lease != nil {
		b.Hint(now, h)
		b.Record.Attempt().FirstByte = b.Record.TTFB - b.Record.Attempt().Start
		if !b.notStarted {
			b.Lease.Answered(now, status < http.StatusInternalServerError, b.Record.Attempt().Hint)
		}
	}
	b.Record.Completeness = intake.Partial
}

// Begun reports whether the head of an upstream's response was passed on.
func (b *Book) Begun() bool { return b.Record.Completeness != intake.Absent }

// Hint notes the load that the upstream tells at the beginning of its response.
func (b *Book) Hint(now time.Time, h http.Header) {
	if hint, ok := b.cfg.Hint(h, now); ok {
		b.Record.Attempt().Told(hint)
	}
}

// Response adds to the header of a response what the configuration asks for. Where to is
// not the response's own header, it gets only what is added.
func (b *Book) Response(own, to http.Header) {
	if b.cfg.RequestID {
		b.identify(own, to)
	}
	if b.cfg.ExplainHeaders {
		b.Record.Explain(to)
	}
}

// Trailer takes in the load that the upstream tells at the end of its response.
func (b *Book) Trailer(trailer http.Header) {
	if len(trailer) == 0 || b.Lease == nil || !b.Begun() {
		return
	}
	now := time.Now()
	hint, ok := b.cfg.Hint(trailer, now)
	if !ok {
		return
	}
	if last := b.Record.Attempt(); last.Hint == nil {
		last.Told(hint)
	}
	b.Lease.Told(now, &hint)
}
