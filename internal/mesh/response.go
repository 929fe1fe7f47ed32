package mesh

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/record"
)

var (
	errBodyEnded = errors.New("a piece of a body that has ended")
	errSecond    = errors.New("the headers of a second request on one stream")
)

// follow replies to Envoy's messages after the destination, in any order, until the stream ends.
func (x *exchange) follow(b body) error {
	passed := b.bytes() // bytes of the request's body
	if b.pieces != nil {
		passed += int64(len(b.pieces.left))
	}
	for {
		m, err := x.receive()
		if err != nil {
			if errors.As(err, new(failure)) {
				return err
			}
			return nil //nolint:nilerr // close decides by the state
		}
		switch m.kind {
		case requestBody:
			passed += int64(len(m.body))
			if limit := x.f.cfg.MaxBody; passed > limit && x.state == placed {
				return x.refuse(fmt.Errorf("%w: more than %d bytes", intake.ErrTooLarge, limit))
			}
			if b.kept == nil {
				return failure{codes.InvalidArgument, errBodyEnded}
			}
			err = x.send(piece(x.stream.message(), requestBodyReply, m.body, m.end))
		case requestTrailers:
			err = x.send(trailers(x.stream.message(), requestTrailersReply))
		case responseHeaders:
			x.respond(m)
			add := http.Header{}
			x.book.Response(m.header, add)
			err = x.send(proceed(x.stream.message(), responseHeadersReply, add))
		case responseBody:
			x.book.Wrote(m.body, len(m.body))
			if m.end {
				x.ended()
			}
			err = x.send(piece(x.stream.message(), responseBodyReply, m.body, m.end))
		case responseTrailers:
			x.book.Trailer(m.header)
			x.ended()
			err = x.send(trailers(x.stream.message(), responseTrailersReply))
		case requestHeaders:
			return failure{codes.InvalidArgument, errSecond}
		}
		if err != nil {
			return err
		}
	}
}

// ended records the end of the response.
func (x *exchange) ended() {
	if x.state == responding {
		x.state = complete
	}
}

// respond records the headers of a response and reports the status to the upstream's breaker.
func (x *exchange) respond(m *message) {
	code, err := strconv.Atoi(m.status)
	if err != nil || x.state != placed {
		return
	}
	x.move(m.served)
	if d := m.details; d != "" && d != "via_upstream" {
		x.state, x.details = local, d
		x.book.Instead(code)
		return
	}
	x.state = responding
	switch {
	case m.end:
		x.state = complete
	case x.first.responseMode == noBody: // Envoy does not send the end
		x.state = complete
		x.book.Unframed()
	}
	x.book.Head(time.Now(), code, m.header)
}

// errRetried: Envoy's attempt at an upstream failed, and Envoy tried the next one.
var errRetried = fmt.Errorf("%w: Envoy tried another upstream", record.ErrNoAnswer)

// move moves the lease to the upstream that responded, via the fallbacks that Envoy tried before it.
func (x *exchange) move(served string) {
	lease := x.book.Lease
	if served == "" || canonical(served) == canonical(lease.Address) {
		return
	}
	tried := []string{canonical(served)}
	same := func(fallback string) bool { return canonical(fallback) == canonical(served) }
	if i := slices.IndexFunc(lease.Fallbacks, same); i >= 0 {
		tried = lease.Fallbacks[:i+1]
	}
	now := time.Now()
	for _, address := range tried {
		x.book.Move(now, address, errRetried)
	}
}
