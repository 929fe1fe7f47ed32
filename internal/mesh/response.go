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

// follow replies to Envoy's messages after the one that names the destination, in any order, until the stream ends. Envoy 1.35
// and later can repeat the last part of a large body: follow ignores the repetition.
func (x *exchange) follow(b body) error {
	passed := int64(0)                          // bytes of the request's body
	requestEnded, responseEnded := false, false // in duplex mode
	if b.pieces != nil {
		passed, requestEnded = b.pieces.bytes, b.pieces.ended
	}
	for {
		m, err := x.receive()
		if err != nil {
			if errors.As(err, new(failure)) {
				return err
			}
			return nil //nolint:nilerr // close decides by the state
		}
		if m.kind == requestBody && requestEnded || m.kind == responseBody && responseEnded {
			continue
		}
		switch m.kind {
		case requestBody:
			requestEnded = m.end
			passed += int64(len(m.body))
			if limit := x.f.cfg.MaxBody; passed > limit && x.state == placed {
				return x.refuse(fmt.Errorf("%w: more than %d bytes", intake.ErrTooLarge, limit))
			}
			if b.pieces == nil {
				return failure{codes.InvalidArgument, errors.New("part of a body was sent after its end")}
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
			responseEnded = m.end
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
			return failure{codes.InvalidArgument, errors.New("the headers of a second request were sent on the stream of the first")}
		}
		if err != nil {
			return err
		}
	}
}

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
	if why := x.caller.own(m, code); why != "" {
		x.state, x.details = local, why
		x.book.Record.Status = code
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

// timedHeader is a header that Envoy adds to the responses of upstreams, unless suppress_envoy_headers is set.
const timedHeader = "X-Envoy-Upstream-Service-Time"

// own returns the reason for a response of Envoy itself, or "" for one of an upstream. The attribute response.code_details
// has the reason. Without it, an error without timedHeader is Envoy's own, if an earlier response had that header on a stream from
// the same address.
func (c *caller) own(m *message, code int) string {
	_, timed := m.header[timedHeader]
	switch {
	case m.details == "via_upstream":
		return ""
	case m.details != "":
		return m.details
	case timed && !c.timed.Load():
		c.timed.Store(true)
	case !timed && c.timed.Load() && code >= http.StatusInternalServerError:
		return fmt.Sprintf("status %d", code)
	}
	return ""
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
