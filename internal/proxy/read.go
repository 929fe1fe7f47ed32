package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/proxy/http1"
	"example.org/pilotfish/internal/record"
)

// freeHead is the header size up to which headers are not counted in the budget. Most are smaller.
const freeHead = 4 << 10

// streamCost is the memory that a job over HTTP/2 counts in the budget, in bytes. Jobs over HTTP/1.1 need no such
// bound, because the number of connections is limited.
const streamCost = 16 << 10

// reserve counts memory in the budget for bodies, until the job's end. Memory of at most freeHead is not counted.
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

// headCost returns the memory of the request's header, in bytes.
func (x *exchange) headCost() (bytes int64) {
	if w, ok := x.w.(verbatim); ok {
		_, bytes = w.Received()
		return bytes
	}
	for name, values := range x.r.Header {
		for _, v := range values {
			bytes += int64(len(name)+len(v)) + http1.LineCost
		}
	}
	if x.r.ProtoMajor > 1 {
		bytes += streamCost
	}
	return bytes
}

// read reads the body, as far as the budget allows, and the job's members, and
// passes the job to the dispatcher.
func (x *exchange) read() error {
	if err := x.reserve(x.headCost()); err != nil {
		return err
	}
	body, err := x.readBody()
	if err != nil {
		return err
	}
	x.body = body
	if !body.Whole() && x.r.ProtoMajor > 1 {
		if err := x.reserve(streamAhead); err != nil {
			return err
		}
	}
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
