package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/record"
)

var (
	errFraming = &record.Refusal{
		Status: 400, Reason: "malformed-body",
		Title: "the body's framing is broken", Text: "malformed body",
	}
	errSlow = &record.Refusal{
		Status: 408, Reason: "slow-body",
		Title: "the body came too slowly", Text: "the body comes too slowly",
	}
)

// read reads the body whole, or as far as the budget allows, and what the job
// says of itself; and takes the job in. What it adds to the exchange does not
// change after it.
func (x *exchange) read() error {
	if cost := headCost(x.r.Header); cost > freeHead { // it counts like a body
		if err := x.p.cfg.Budget.Reserve(cost); err != nil {
			return err
		}
		x.counted = cost
	}
	body, err := x.readBody()
	if err != nil {
		return err
	}
	x.body = body
	if x.target, err = target(x.r); err != nil {
		return err
	}
	if err := x.describe(); err != nil {
		return err
	}
	x.header, x.quiet = x.outgoing()
	x.job = x.begin()
	return nil
}

// describe reads what the job says of itself.
func (x *exchange) describe() error {
	d, err := x.p.cfg.Reader.Describe(intake.Head{Method: x.r.Method, Path: x.r.URL.EscapedPath(), Header: x.r.Header}, x.body.Bytes(), x.body.Whole())
	x.record.Describe(&d)
	if err != nil {
		return fmt.Errorf("%w: %w", record.ErrMalformed, err)
	}
	return nil
}

// outgoing is the header that all attempts send. quiet: the submitter has not asked to
// be told when the job begins, and is not.
func (x *exchange) outgoing() (h http.Header, quiet bool) {
	h = outgoingHeader(x.r, x.id, x.p.cfg.AskLoad)
	if x.p.cfg.Trace != nil {
		x.record.Span = x.p.cfg.Trace(h)
	}
	if x.p.cfg.AskBegun {
		quiet = askBegun(h)
	}
	return h, quiet
}

// begin takes the job in.
func (x *exchange) begin() *dispatch.Job {
	if !x.body.Whole() {
		_ = x.rc.EnableFullDuplex() // HTTP/2 always is: an upstream may answer before the rest has come
	}
	f := &x.record.Facts
	var withdraw dispatch.Withdrawer
	if x.body.Whole() {
		withdraw = &x.withdrawal
	}
	return x.p.cfg.Claimer.Begin(dispatch.Request{
		Withdraw: withdraw,
		Project:  f.Key, Priority: f.Priority, Arrived: x.record.Arrived, Bytes: int64(len(x.body.Bytes())),
		Queue: f.Queue, Evaluate: f.Evaluate, Stream: f.Stream, DataBytes: f.Bytes,
	})
}

// readBody reads the body from the submitter.
func (x *exchange) readBody() (*intake.Body, error) {
	var from io.Reader = x.r.Body
	if x.r.Body != http.NoBody {
		from = &x.paced
	}
	body, err := intake.ReadBody(from, x.r.ContentLength, x.p.cfg.MaxBody, x.p.cfg.Budget)
	if err != nil {
		x.record.Body = x.r.ContentLength
		return nil, x.sendingFailed(err)
	}
	x.record.Body, x.record.Unkept = body.Len(), !body.Whole()
	return body, nil
}

// sendingFailed says why a submitter's body could not be read.
func (x *exchange) sendingFailed(err error) error {
	var broken *net.OpError
	switch {
	case errors.Is(err, intake.ErrTooLarge), errors.Is(err, intake.ErrNoRoom):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: %w", errSlow, err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &broken),
		x.r.ProtoMajor < 2 && x.r.ContentLength >= 0, // such a body has no framing that could be broken
		x.left():
		return fmt.Errorf("%w: %w", record.ErrGone, err)
	}
	return fmt.Errorf("%w: %w", errFraming, err)
}

// justAfter is how long after the end of its body the end of a request comes at most,
// on a busy machine. Only a request that is malformed waits for so long.
const justAfter = time.Second

// left reports whether the submitter has left. When it does, the server of HTTP/2 ends
// the body with an error of its own, and just after that the request.
func (x *exchange) left() bool {
	if x.r.ProtoMajor < 2 {
		return x.r.Context().Err() != nil
	}
	soon := time.NewTimer(justAfter)
	defer soon.Stop()
	select {
	case <-x.r.Context().Done():
		return true
	case <-soon.C:
		return false
	}
}

// slowest is the rate, in bytes per second, below which a body is too slow.
// It is far below what any line offers, so that only those who mean to keep a
// connection busy meet it.
const slowest = 256

// pacedBody reads a submitter's body and gives up on one that hardly comes.
// Only time spent blocked counts, so that a slow upstream is not held against
// the submitter.
type pacedBody struct {
	r       io.Reader
	rc      *http.ResponseController
	idle    time.Duration
	got     int64
	blocked time.Duration

	mu    sync.Mutex
	ended bool // another deadline holds
}

func (b *pacedBody) Read(p []byte) (int, error) {
	if r, ok := b.r.(interface{ Waits() bool }); ok && !r.Waits() {
		n, err := b.r.Read(p)
		b.got += int64(n)
		return n, err
	}
	started := time.Now()
	b.deadline(started.Add(b.idle + time.Duration(b.got)*(time.Second/slowest) - b.blocked))
	n, err := b.r.Read(p)
	b.deadline(time.Time{}) // one that passed between two reads would end an HTTP/2 stream
	b.got += int64(n)
	b.blocked += time.Since(started)
	return n, err
}

func (b *pacedBody) deadline(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		_ = b.rc.SetReadDeadline(at) // without deadlines, a body is not paced
	}
}

// end ends the pacing. All reads have that deadline, also one of an attempt that waits.
func (b *pacedBody) end(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	_ = b.rc.SetReadDeadline(at) // likewise
}
