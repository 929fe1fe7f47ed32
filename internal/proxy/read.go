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

// freeHead is the header size up to which headers are not counted in the budget. Most are smaller.
const freeHead = 4 << 10

// streamCost is the memory of a job over HTTP/2, in bytes. The number of jobs over HTTP/1.1 is limited by that of connections.
const streamCost = 16 << 10

// reserve counts a large header in the budget for bodies, until the job's end.
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

// headCost returns the memory of a request header, in bytes.
func headCost(h http.Header) (bytes int64) {
	for name, values := range h {
		for _, v := range values {
			bytes += int64(len(name)+len(v)) + upstreamclient.LineCost
		}
	}
	return bytes
}

// read reads the body, as far as the budget allows, and the job's members, and
// passes the job to the dispatcher.
func (x *exchange) read() error {
	head := headCost(x.r.Header)
	if x.r.ProtoMajor > 1 {
		head += streamCost
	}
	if err := x.reserve(head); err != nil {
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
		_ = x.rc.EnableFullDuplex() // an upstream can respond before the rest of the body has arrived; HTTP/2 is always full duplex
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

// sendingFailed returns the reason why a submitter's body could not be read.
func (x *exchange) sendingFailed(err error) error {
	var broken *net.OpError
	switch {
	case errors.Is(err, intake.ErrTooLarge), errors.Is(err, intake.ErrNoRoom):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: %w", record.ErrSlow, err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &broken),
		x.r.ProtoMajor > 1 || x.r.ContentLength >= 0, // these bodies have no framing that could be malformed
		x.r.Context().Err() != nil:
		return fmt.Errorf("%w: %w", record.ErrGone, err)
	}
	return fmt.Errorf("%w: %w", record.ErrFraming, err)
}

// slowest is the minimum rate of a body, in bytes per second. It is far below any
// real line, so it only stops attackers that hold connections open (slowloris).
const slowest = 256

// pacedBody reads a submitter's body and fails if it arrives too slowly. Only time
// spent blocked in reads counts, so a slow upstream is not blamed on the submitter.
type pacedBody struct {
	r       io.Reader
	ahead   int64 // bytes that can have arrived without being readable
	rc      *http.ResponseController
	got     int64
	blocked time.Duration

	mu    sync.Mutex
	ended bool // the pacing has ended
}

func (b *pacedBody) Read(p []byte) (int, error) {
	if received, ok := b.r.(interface{ Ready() bool }); ok && received.Ready() { // the read does not block
		n, err := b.r.Read(p)
		b.got += int64(n)
		return n, err
	}
	started := time.Now()
	b.deadline(started.Add(bodyIdle + time.Duration(b.got+b.ahead)*(time.Second/slowest) - b.blocked))
	n, err := b.r.Read(p)
	b.deadline(time.Time{}) // a deadline that passes between two reads would end an HTTP/2 stream
	b.got += int64(n)
	b.blocked += time.Since(started)
	return n, err
}

func (b *pacedBody) deadline(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		_ = b.rc.SetReadDeadline(at) // on error the connection has no deadlines, and the body is not paced
	}
}

// stop ends the pacing at the end of the job. An abandoned attempt can still read, but net/http must no longer be called then.
func (b *pacedBody) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}

// end ends the pacing and sets a read deadline, which also applies to a read in progress.
func (b *pacedBody) end(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	_ = b.rc.SetReadDeadline(at) // on error the connection has no deadlines
}
