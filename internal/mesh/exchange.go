package mesh

import (
	"context"
	"errors"
	"fmt"
	"time"

	ext "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"net/http"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/record"
)

// exchange is one HTTP request that Envoy shows, from its headers to the end of
// the stream. It belongs to the goroutine of the stream.
type exchange struct {
	f      *Filter
	ctx    context.Context // ends with the stream, also when Envoy closes it politely
	stream ext.ExternalProcessor_ProcessServer
	in     <-chan *ext.ProcessingRequest // what Envoy sends after the first message
	record *record.Job

	lease    *balancer.Lease // nil: no upstream, or none anymore
	refused  bool            // pilotfish has answered itself
	response response
}

// newExchange begins to follow a stream. A goroutine hands its messages over and
// notices its end, also while the job waits for an upstream.
func newExchange(f *Filter, stream ext.ExternalProcessor_ProcessServer, r request) *exchange {
	ctx, cancel := context.WithCancelCause(stream.Context())
	in := make(chan *ext.ProcessingRequest)
	go func() {
		defer cancel(errLeft)
		defer close(in)
		for {
			m, err := stream.Recv()
			if err != nil {
				return
			}
			select {
			case in <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	return &exchange{
		f: f, ctx: ctx, stream: stream, in: in,
		record: &record.Job{
			ID:      intake.ID(r.header.Get("X-Request-Id"), r.header.Get("Traceparent")),
			Arrived: time.Now(), Outcome: intake.Broken,
		},
	}
}

// run is a request's way: read, claim, tell Envoy, and follow the response. An
// error before Envoy was told becomes a response of pilotfish's own.
func (x *exchange) run(r request) error {
	b, err := x.read(r)
	if err == nil {
		defer b.release()
		if x.f.cfg.Trace != nil {
			x.record.Span = x.f.cfg.Trace(r.header)
		}
		err = x.claim(r, b)
	}
	if err != nil {
		return x.refuse(err)
	}
	if err := x.place(r, b); err != nil {
		return err
	}
	return x.follow(r, b)
}

// claim gets the job its upstream. Without one, the error says why.
func (x *exchange) claim(r request, b body) error {
	f := &x.record.Facts
	job := x.f.cfg.Claimer.Begin(dispatch.Request{
		Project: f.Key, Priority: f.Priority, Arrived: x.record.Arrived, Bytes: b.bytes(),
		Queue: f.Queue, Evaluate: f.Evaluate, Stream: f.Stream, DataBytes: f.Bytes,
		Among: r.subset, Fallbacks: true,
	})
	started := time.Now()
	lease, err := x.f.cfg.Claimer.Claim(x.ctx, started, job)
	now := time.Now()
	x.record.Queued = now.Sub(started)
	switch {
	case err != nil && x.ctx.Err() != nil:
		return context.Cause(x.ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return record.ErrDeadline
	case err != nil:
		return err
	}
	x.lease = lease
	x.record.Begin(now, *lease.Choice)
	return nil
}

// askLoadHeader asks an upstream for a load report in the form of ORCA.
const askLoadHeader = "Endpoint-Load-Metrics-Format"

// place tells Envoy where the request goes, and passes on what was kept of it.
func (x *exchange) place(r request, b body) error {
	addresses := append([]string{x.lease.Address}, x.lease.Fallbacks...)
	add := x.identified(r.header)
	if _, asks := r.header[askLoadHeader]; x.f.cfg.AskLoad != "" && !asks {
		add[askLoadHeader] = []string{x.f.cfg.AskLoad}
	}
	if x.record.Span != nil {
		add["Traceparent"] = r.header["Traceparent"]
	}
	if err := x.send(destination(addresses, add, r.buffered() && !r.empty)); err != nil || b.kept == nil {
		return err
	}
	kept := b.kept.Bytes()
	for len(kept) > maxPiece {
		if err := x.send(requestPiece(kept[:maxPiece], false)); err != nil {
			return err
		}
		kept = kept[maxPiece:]
	}
	if err := x.send(requestPiece(kept, b.pieces.ended && !b.pieces.trailers && len(b.pieces.left) == 0)); err != nil {
		return err
	}
	if left := b.pieces.left; len(left) > 0 {
		if err := x.send(requestPiece(left, b.pieces.ended && !b.pieces.trailers)); err != nil {
			return err
		}
	}
	if b.pieces.trailers {
		return x.send(requestTrailers())
	}
	return nil
}

// refuse makes Envoy answer with what went wrong.
func (x *exchange) refuse(err error) error {
	p := record.ProblemOf(err)
	x.refused = true
	x.record.Err = err
	x.record.Status, x.record.Reason = p.Status, p.Reason
	x.record.Outcome, x.record.Shedding = p.Outcome, p.Shedding
	if p.Status == record.StatusGone {
		return nil
	}
	header := x.identified(nil)
	p.SetHeaders(header, x.f.cfg.RetryAfter)
	return x.send(answer(p, header))
}

// identified is the header that names the job, where there is none.
func (x *exchange) identified(h http.Header) http.Header {
	add := http.Header{}
	if _, told := h["X-Request-Id"]; !told {
		add.Set("X-Request-Id", x.record.ID)
	}
	return add
}

// next waits for Envoy's next message.
func (x *exchange) next() (*ext.ProcessingRequest, error) {
	m, ok := <-x.in
	if !ok {
		return nil, errLeft
	}
	return m, nil
}

// send replies to Envoy.
func (x *exchange) send(m *ext.ProcessingResponse) error {
	if err := x.stream.Send(m); err != nil {
		return fmt.Errorf("%w: %w", errLeft, err)
	}
	return nil
}

// end ends the lease and closes the books, on every path.
func (x *exchange) end() {
	if !x.refused {
		x.finish()
	}
	x.record.Total = time.Since(x.record.Arrived)
	x.f.cfg.Observe(x.record)
}
