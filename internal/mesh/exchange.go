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
	ctx    context.Context // of the wait for an upstream
	cancel context.CancelCauseFunc
	stream *stream
	first  *message // the request's headers
	book   job.Book

	state   state
	limit   int64  // maximum size of the next message, in bytes
	details string // why Envoy sent a response of its own
}

func newExchange(f *Filter, r *http.Request, s *stream, first *message) *exchange {
	x := &exchange{f: f, stream: s, first: first, limit: f.cfg.MaxBody + maxHead}
	ctx, cancel := context.WithCancelCause(r.Context())
	x.cancel = cancel
	x.ctx = &waiting{Context: ctx, watch: func() { s.watch(func() { cancel(errLeft) }) }}
	x.book.Open(&f.cfg, time.Now(), first.intakeHead(), r.RemoteAddr)
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
		x.book.Prioritise(p)
	}
	tenant := x.first.header.Get(fairnessHeader)
	job := dispatch.Request{Project: intake.Key(tenant), Name: settings.Cut(tenant, settings.MaxText), Bytes: b.bytes(), Fallbacks: true}
	if x.first.hasSubset {
		job.Among = append([]string{}, x.first.subset...)
	}
	x.book.Begin(job)
	if _, err := x.book.Claim(x.ctx); err != nil {
		return x.refuse(err)
	}
	x.book.Expect(x.first.header, add)
	if err := x.place(b, add); err != nil {
		return err
	}
	return x.follow(b)
}

// place sends the addresses of the upstreams to Envoy, with headers to add, and the kept part of the body.
func (x *exchange) place(b body, add http.Header) error {
	x.state = placed
	reply := requestHeadersReply
	if x.first.requestMode == bufferedBody && !x.first.end {
		reply = requestBodyReply
	}
	if x.first.responseMode == noBody && b.kept == nil {
		x.limit = maxHead
	}
	addresses := append([]string{x.book.Lease.Address}, x.book.Lease.Fallbacks...)
	m := destination(x.stream.message(), reply, addresses, add)
	if b.kept == nil {
		return x.send(m)
	}
	return x.forward(b, m)
}

// refuse makes Envoy send an error response.
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

// receive waits for Envoy's next message.
func (x *exchange) receive() (*message, error) {
	b, err := x.stream.receive(x.limit, 1)
	switch {
	case err == nil:
	case errors.Is(err, intake.ErrTooLarge):
		return nil, fmt.Errorf("%w; job.max_body is %d bytes", err, x.f.cfg.MaxBody)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), x.ctx.Err() != nil:
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
func (x *exchange) send(m []byte) error { return left(x.stream.send(m)) }

// queue replies to Envoy together with the next reply.
func (x *exchange) queue(m []byte) error { return left(x.stream.queue(m)) }

// left wraps the error of writing a reply.
func left(err error) error {
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
		x.book.End(job.Left, errLeft)
	case x.state == local:
		x.book.End(job.None, fmt.Errorf("%w: Envoy responded itself: %s", record.ErrNoAnswer, x.details))
	case x.state == complete:
		x.book.End(job.Whole, nil)
	}
}
