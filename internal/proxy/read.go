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
	"example.org/pilotfish/internal/proxy/upstreamclient"
	"example.org/pilotfish/internal/record"
)

// freeHead is how much of each head counts nowhere. Most heads take less.
const freeHead = 4 << 10

// reserve counts a large head like a body, until the job's end.
func (x *exchange) reserve(bytes int64) error {
	if bytes <= freeHead {
		return nil
	}
	if err := x.p.cfg.Budget.Reserve(bytes); err != nil {
		return err
	}
	x.counted += bytes
	return nil
}

// headCost is what the head of a request takes in memory, in bytes.
func headCost(h http.Header) (bytes int64) {
	for name, values := range h {
		for _, v := range values {
			bytes += int64(len(name)+len(v)) + upstreamclient.LineCost
		}
	}
	return bytes
}

// read reads the body whole, or as far as the budget allows, and what the job
// says of itself; and takes the job in. What it adds to the exchange does not
// change after it.
func (x *exchange) read() error {
	if err := x.reserve(headCost(x.r.Header)); err != nil {
		return err
	}
	body, err := x.readBody()
	if err != nil {
		return err
	}
	x.body = body
	if x.target, err = target(x.r); err != nil {
		return err
	}
	if err := x.book.Describe(body.Bytes(), body.Whole()); err != nil {
		return err
	}
	x.header = outgoingHeader(x.r)
	x.book.Request(x.header, x.header)
	request := dispatch.Request{Bytes: int64(len(body.Bytes()))}
	if body.Whole() {
		request.Withdraw = &x.withdrawal
	} else {
		_ = x.rc.EnableFullDuplex() // HTTP/2 always is: an upstream may answer before the rest has come
	}
	x.book.Begin(request)
	return nil
}

// readBody reads the body from the submitter.
func (x *exchange) readBody() (*intake.Body, error) {
	var from io.Reader = x.r.Body
	if x.r.Body != http.NoBody {
		from = &x.paced
	}
	body, err := intake.ReadBody(from, x.r.ContentLength, x.p.cfg.MaxBody, x.p.cfg.Budget)
	if err != nil {
		x.book.Body(x.r.ContentLength, true)
		return nil, x.sendingFailed(err)
	}
	x.book.Body(body.Len(), body.Whole())
	return body, nil
}

// sendingFailed says why a submitter's body could not be read.
func (x *exchange) sendingFailed(err error) error {
	var broken *net.OpError
	switch {
	case errors.Is(err, intake.ErrTooLarge), errors.Is(err, intake.ErrNoRoom):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: %w", record.ErrSlow, err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &broken),
		x.r.ProtoMajor > 1 || x.r.ContentLength >= 0, // such a body's framing breaks the stream, or there is none
		x.r.Context().Err() != nil:
		return fmt.Errorf("%w: %w", record.ErrGone, err)
	}
	return fmt.Errorf("%w: %w", record.ErrFraming, err)
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
	got     int64
	blocked time.Duration

	mu    sync.Mutex
	ended bool // another deadline holds
}

func (b *pacedBody) Read(p []byte) (int, error) {
	if received, ok := b.r.(interface{ Ready() bool }); ok && received.Ready() { // no clock is needed
		n, err := b.r.Read(p)
		b.got += int64(n)
		return n, err
	}
	started := time.Now()
	b.deadline(started.Add(bodyIdle + time.Duration(b.got)*(time.Second/slowest) - b.blocked))
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

// stop ends the pacing with the job: an attempt may still read, and net/http then has nothing that could have a deadline.
func (b *pacedBody) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}

// end ends the pacing. All reads have that deadline, also one of an attempt that waits.
func (b *pacedBody) end(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	_ = b.rc.SetReadDeadline(at) // likewise
}
