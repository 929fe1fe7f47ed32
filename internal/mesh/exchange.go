package mesh

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	ext "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/peer"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

// exchange is one HTTP request that Envoy shows, from its headers to the end of
// the stream. It belongs to the goroutine of the stream.
type exchange struct {
	f      *Filter
	ctx    context.Context // ends with the stream, also when Envoy closes it politely
	stream ext.ExternalProcessor_ProcessServer
	in     <-chan *ext.ProcessingRequest // what Envoy sends after the first message
	from   *messages
	book   job.Book

	refused  bool // pilotfish has answered itself
	response response
}

// newExchange begins to follow a stream. A goroutine hands its messages over and
// notices its end, also while the job waits for an upstream.
func newExchange(f *Filter, stream ext.ExternalProcessor_ProcessServer, from *messages, r request) *exchange {
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
	x := &exchange{f: f, ctx: ctx, stream: stream, in: in, from: from}
	var envoy string
	if p, ok := peer.FromContext(ctx); ok {
		envoy = p.Addr.String()
	}
	x.book.Open(&f.cfg, time.Now(), intake.Head{Method: r.method, Path: r.path, Header: r.header}, envoy)
	return x
}

// Headers by which a gateway says whom a request counts for, and the name of its objective (Gateway API Inference
// Extension). What an objective means stands in a resource: only the names high and low are understood.
const (
	fairnessHeader  = "X-Gateway-Inference-Fairness-Id"
	objectiveHeader = "X-Gateway-Inference-Objective"
)

// run is a request's way: read, claim, tell Envoy, and follow the response. An
// error before Envoy was told becomes a response of pilotfish's own.
func (x *exchange) run(r request) error {
	b, err := x.read(r)
	if err != nil {
		return x.refuse(err)
	}
	defer b.release()
	add := http.Header{}
	x.book.Request(r.header, add)
	if p, ok := selection.ParsePriority(r.header.Get(objectiveHeader)); ok {
		x.book.Record.Facts.Priority = p
	}
	counted := r.header.Get(fairnessHeader)
	x.book.Begin(dispatch.Request{Project: intake.Key(counted), Name: counted, Bytes: b.bytes(), Among: r.subset, Fallbacks: true})
	if _, err := x.book.Claim(x.ctx); err != nil {
		return x.refuse(err)
	}
	x.book.Expect(r.header, add)
	if err := x.place(r, b, add); err != nil {
		return err
	}
	return x.follow(r, b)
}

// place tells Envoy where the request goes and which headers to add, and passes on what
// was kept of it.
func (x *exchange) place(r request, b body, add http.Header) error {
	addresses := append([]string{x.book.Lease.Address}, x.book.Lease.Fallbacks...)
	if err := x.send(destination(addresses, add, r.buffered() && !r.empty)); err != nil || b.kept == nil {
		return err
	}
	pieces := slices.Collect(slices.Chunk(b.kept.Bytes(), maxPiece))
	if left := b.pieces.left; len(left) > 0 || len(pieces) == 0 {
		pieces = append(pieces, left)
	}
	for i, piece := range pieces {
		last := i == len(pieces)-1 && b.pieces.ended && !b.pieces.trailers
		if err := x.send(requestPiece(piece, last)); err != nil {
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
	p := x.book.Refuse(err)
	x.refused = true
	if p.Status == record.StatusGone {
		return nil
	}
	header := http.Header{}
	x.book.Response(nil, header)
	p.SetHeaders(header)
	return x.send(answer(p, header))
}

// next waits for Envoy's next message.
func (x *exchange) next() (*ext.ProcessingRequest, error) {
	x.from.next()
	m, ok := <-x.in
	if !ok {
		return nil, cmp.Or(x.from.err(), errLeft)
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

// end ends the job and closes its book, on every path.
func (x *exchange) end() {
	if !x.refused {
		x.finish()
	}
	x.book.Close()
}
