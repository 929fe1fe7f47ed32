package mesh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/mesh/h2"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

// state is the state of a stream. The package comment describes the states.
type state uint8

const (
	reading state = iota
	placed
	responding
	complete
	local
	refused
)

// exchange is one HTTP request, from its headers to the end of the stream. Only the stream's goroutine
// uses it.
type exchange struct {
	f      *Filter
	ctx    *waiting // context of the wait for an upstream
	cancel context.CancelCauseFunc
	caller *caller
	stream *stream
	first  *message // the request's headers
	book   job.Book

	state   state
	limit   int64  // maximum size of the next message, in bytes
	details string // why Envoy sent a response of its own
}

func newExchange(f *Filter, c *caller, s *stream, first *message) *exchange {
	x := &exchange{f: f, caller: c, stream: s, first: first, limit: f.cfg.MaxBody + maxHead}
	ctx, cancel := context.WithCancelCause(context.Background())
	x.cancel = cancel
	x.ctx = &waiting{Context: ctx, detach: func() { s.Detach(func() { cancel(errLeft) }) }}
	x.book.Open(&f.cfg, time.Now(), intake.Head{Method: first.method, Path: first.path, Header: first.header}, c.address)
	return x
}

// Headers of the Gateway API Inference Extension: the tenant for which a request counts, and its objective. Objectives are
// resources of the cluster, which pilotfish does not read, so only the names high and low have an effect.
const (
	fairnessHeader  = "X-Gateway-Inference-Fairness-Id"
	objectiveHeader = "X-Gateway-Inference-Objective"
)

// run reads the request, claims an upstream, sends its address to Envoy and follows the response. After an
// error before that, Envoy sends an error response of pilotfish.
func (x *exchange) run() error {
	b, err := x.read()
	if err != nil {
		return x.refuse(err)
	}
	defer b.release()
	add := http.Header{}
	x.book.Request(x.first.header, add)
	if p, ok := selection.ParsePriority(x.first.header.Get(objectiveHeader)); ok {
		x.book.Record.Facts.Priority = p
	}
	tenant := x.first.header.Get(fairnessHeader)
	job := dispatch.Request{Project: intake.Key(tenant), Name: settings.Cut(tenant, settings.MaxText), Bytes: b.bytes(), Fallbacks: true}
	if x.first.hasSubset {
		job.Among = append([]string{}, x.first.subset...)
	}
	x.book.Begin(job)
	if _, err := x.book.Claim(x.ctx, time.Now()); err != nil {
		return x.refuse(err)
	}
	x.book.Expect(x.first.header, add)
	if err := x.place(b, add); err != nil {
		return err
	}
	return x.follow(b)
}

// place sends the addresses of the upstreams to Envoy, with headers to add, and replies to the received part of the body.
func (x *exchange) place(b body, add http.Header) error {
	x.state = placed
	reply := requestHeadersReply
	if b.pieces == nil && x.first.requestMode != noBody && !x.first.end {
		reply = requestBodyReply
	}
	if x.first.responseMode == noBody && b.pieces == nil {
		x.limit = maxHead
	}
	addresses := append([]string{x.book.Lease.Address}, x.book.Lease.Fallbacks...)
	m := destination(x.stream.message(), reply, addresses, add)
	if b.pieces == nil {
		return x.send(m)
	}
	return x.forward(b, m)
}

func (x *exchange) refuse(err error) error {
	p := x.book.Refuse(err)
	x.state = refused
	if p.Status == record.StatusGone {
		return nil
	}
	header := http.Header{}
	x.book.Response(nil, header)
	p.SetHeaders(header)
	return x.send(immediate(x.stream.message(), p, header))
}

func (x *exchange) receive() (*message, error) {
	b, err := x.stream.receive(x.limit, 1)
	switch {
	case err == nil:
	case errors.Is(err, intake.ErrTooLarge):
		return nil, fmt.Errorf("%w; job.max_body is %d bytes", err, x.f.cfg.MaxBody)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, h2.ErrGone):
		return nil, errLeft
	default:
		return nil, err
	}
	m, err := decode(b)
	if err != nil {
		return nil, failure{codes.InvalidArgument, err}
	}
	return m, nil
}

// send replies to Envoy.
func (x *exchange) send(m []byte) error {
	err := x.stream.send(m)
	if err != nil {
		err = fmt.Errorf("%w: %w", errLeft, err)
	}
	return err
}

// close ends the job according to the state, and closes its record.
func (x *exchange) close() {
	defer x.cancel(errLeft)
	defer x.book.Close()
	switch {
	case x.state == refused, x.book.Lease == nil: // without a lease, there was a panic
	case x.state == reading, x.state == placed:
		x.book.Refuse(errLeft)
	case x.state == responding:
		x.book.End(pool.Gone, errLeft)
	case x.state == local:
		x.book.End(pool.Refused, fmt.Errorf("%w: Envoy responded itself: %s", record.ErrNoAnswer, x.details))
	case x.state == complete:
		x.book.End(pool.Answered, nil)
	}
}
