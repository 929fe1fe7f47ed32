// Package job holds the state of one job from its arrival to its end: its record and its
// lease. The HTTP proxy and the mesh server both use it. They must call the methods of a Book
// in this order:
//
//	Open > Body > Describe > Begin > (Claim > Failed)... > Claim > Head > Wrote... > Trailer > Unframed > End > Close
//
// Refuse can replace End. Close must be called on every path.
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

// Book is the state of one job. It is not safe for concurrent use. Open must be called first.
type Book struct {
	// Record is the record of the job so far.
	Record record.Job
	// Job is the dispatcher's state of the job; nil before Begin.
	Job *dispatch.Job
	// Lease is the lease of the current attempt; nil between attempts.
	Lease *balancer.Lease

	cfg        *Config
	id         [1]string // request ID, as a header value
	expected   [1]string // expected duration, as the header value that pilotfish sends; "" if it sends none
	header     http.Header
	tail       []byte // last bytes of the response body, if the job's project has blocks
	notStarted bool   // the response says that the upstream did not start the job
}

// Open starts the book of a request that arrives now. peer is the client's address.
func (b *Book) Open(cfg *Config, now time.Time, h intake.Head, peer string) {
	b.cfg, b.header = cfg, h.Header
	b.id[0] = intake.ID(h.Header.Get("X-Request-Id"), h.Header.Get("Traceparent"))
	r := &b.Record
	r.ID, r.Arrived, r.Outcome = b.id[0], now, intake.Broken
	r.Method, r.Path, r.Peer = h.Method, h.Path, peer
}

// Body records the size of the request body in bytes, or -1, and whether it is kept for retries.
func (b *Book) Body(size int64, kept bool) { b.Record.Body, b.Record.Unkept = size, !kept }

// Describe reads the job's members from the request. body is the whole body or its first bytes.
func (b *Book) Describe(body []byte, whole bool) error {
	d, err := b.cfg.Reader.Describe(intake.Head{Method: b.Record.Method, Path: b.Record.Path, Header: b.header}, body, whole)
	b.Record.Facts, b.Record.Read, b.Record.Unread = d.Facts, d.Reading, d.Unread
	if err != nil {
		return fmt.Errorf("%w: %w", record.ErrMalformed, err)
	}
	if whole {
		b.cfg.Tokenize(&b.Record.Facts, body)
	}
	if b.cfg.Body != nil && whole {
		b.cfg.Body(&b.Record, b.header, body)
	}
	return nil
}

// Request adds pilotfish's headers for upstreams: the request ID, trace context and load
// request. own is the request's header; the additions go to the header to, which can be own.
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

// askLoadHeader requests an ORCA load report with the response, in the format text, json or bin.
const askLoadHeader = "Endpoint-Load-Metrics-Format"

// identify adds the request ID if own has none.
func (b *Book) identify(own, to http.Header) {
	if _, named := own["X-Request-Id"]; !named {
		to["X-Request-Id"] = b.id[:]
	}
}

// Begin passes the job to the dispatcher. r contains what the job's facts do not. r.Project and r.Name are set
// only if project limits count the job for another key than its project, such as a gateway's fairness ID.
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
	r.DataBytes, r.LengthKey, r.Priority, r.Arrived = f.Bytes, f.LengthKey, f.Priority, b.Record.Arrived
	r.Queue, r.Evaluate, r.Stream = f.Queue, f.Evaluate, f.Stream
	b.Job = b.cfg.Claimer.Begin(r)
}

// Claim waits from started on for an upstream, and begins an attempt there. now is the start of the attempt.
func (b *Book) Claim(ctx context.Context, started time.Time) (now time.Time, err error) {
	lease, err := b.cfg.Claimer.Claim(ctx, started, b.Job)
	if err != nil {
		b.Record.Queued += time.Since(started)
		switch {
		case ctx.Err() != nil:
			err = record.Gone(ctx)
		case errors.Is(err, context.DeadlineExceeded):
			err = record.ErrDeadline
		}
		return started, b.waited(err)
	}
	now = started // also for a job that is moved: its upstream was claimed before
	if lease.Claimed.After(now) {
		now = lease.Claimed
		b.Record.Queued += now.Sub(started)
	}
	b.Lease = lease
	b.Record.Begin(now, lease.Choice)
	return now, nil
}

// waited adds why no upstream is known to the error of a job that waited in vain, or for which the queue was full.
func (b *Book) waited(err error) error {
	if b.cfg.NoUpstream != nil && (errors.Is(err, dispatch.ErrWaited) || errors.Is(err, dispatch.ErrFull)) {
		if why := b.cfg.NoUpstream(); why != "" {
			return fmt.Errorf("%w: %s", err, why)
		}
	}
	return err
}

// Expect adds the job's expected duration at this upstream to the header of an attempt, in seconds. It does nothing
// if the duration is unknown or the submitter has set the header. own and to are as in Request.
func (b *Book) Expect(own, to http.Header) {
	name, seconds := b.cfg.Job.ExpectedHeader, b.Lease.Expected
	if name == "" || seconds <= 0 || len(own[name]) > 0 && b.expected[0] == "" {
		return
	}
	b.expected[0] = strconv.FormatFloat(seconds, 'f', 3, 64)
	to[name] = b.expected[:]
}

// Identify adds the ID with which the attempt can be withdrawn, and replaces an ID of the submitter.
func (b *Book) Identify(to http.Header) {
	if b.cfg.Job.WithdrawPath != "" {
		to["Job-Id"] = []string{b.Lease.ID()}
	}
}

// Move moves the lease to another upstream, after the previous attempt failed with err.
func (b *Book) Move(now time.Time, address string, err error) {
	b.endAttempt(now, pool.Refused, err)
	b.Lease.Move(now, address)
	b.Record.Begin(now, b.Lease.Choice)
}

// Failed ends a failed attempt and returns whether the job is retried.
func (b *Book) Failed(f dispatch.Failure, err error) dispatch.Next {
	now, lease := time.Now(), b.Lease
	b.Lease = nil
	b.endAttempt(now, f.Outcome, err)
	next := lease.Failed(now, f)
	b.Record.RetryRefused = !next.Again && next.OverBudget
	return next
}

// Head records the start of the forwarded response. The upstream's breaker counts it now, because the
// end of the response can be hours later. Without a lease, the response belongs to an
// attempt that has ended.
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

// Begun reports whether the header of an upstream's response was forwarded.
func (b *Book) Begun() bool { return b.Record.Completeness != intake.Absent }

// Hint records the load that the upstream reports in the header of its response.
func (b *Book) Hint(now time.Time, h http.Header) {
	if hint, err := b.hint(now, h); err == nil {
		b.Record.Attempt().Hinted(hint)
	}
}

// hint parses the load in a header or trailer.
func (b *Book) hint(now time.Time, h http.Header) (pool.Hint, error) {
	hint, err := b.cfg.Hint(h, now)
	if err != nil && b.cfg.NoHint != nil {
		b.cfg.NoHint(b.Record.Attempt().Upstream, err)
	}
	return hint, err
}

// Response adds the configured headers to a response: the request ID and the explanation. own
// is the response's header; the additions go to the header to, which can be own.
func (b *Book) Response(own, to http.Header) {
	if b.cfg.RequestID {
		b.identify(own, to)
	}
	if b.cfg.ExplainHeaders {
		b.Record.Explain(to)
	}
}

// Trailer records the load that the upstream reports in the trailer of its response.
func (b *Book) Trailer(trailer http.Header) {
	if len(trailer) == 0 || b.Lease == nil || !b.Begun() {
		return
	}
	now := time.Now()
	hint, err := b.hint(now, trailer)
	if err != nil {
		return
	}
	if last := b.Record.Attempt(); last.Hint == nil {
		last.Hinted(hint)
	}
	b.Lease.Hinted(now, &hint)
}
