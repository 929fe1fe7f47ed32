package mesh

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	modes "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	ext "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/record"
)

// response is what Envoy has shown of the response.
type response struct {
	begun, complete bool
	// own says why Envoy has answered itself; "" for an upstream's response.
	own string
}

// follow replies to what Envoy shows after it was told the destination, in
// whatever order it comes, until the stream ends.
func (x *exchange) follow(r request, b body) error {
	passed := b.bytes()
	if b.pieces != nil {
		passed += int64(len(b.pieces.left))
	}
	for {
		m, err := x.next()
		if err != nil {
			return nil //nolint:nilerr // finish looks how far the response came
		}
		switch {
		case m.GetRequestBody() != nil:
			passed += int64(len(m.GetRequestBody().GetBody()))
			if most := x.f.cfg.MaxBody; passed > most && !x.response.begun {
				return x.refuse(fmt.Errorf("%w: more than %d bytes", intake.ErrTooLarge, most))
			}
			if b.kept == nil {
				return status.Error(codes.InvalidArgument, "a piece of a body that has ended")
			}
			err = x.send(requestPiece(m.GetRequestBody().GetBody(), m.GetRequestBody().GetEndOfStream()))
		case m.GetRequestTrailers() != nil:
			err = x.send(requestTrailers())
		case m.GetResponseHeaders() != nil:
			pseudo, header := split(m.GetResponseHeaders().GetHeaders())
			x.answered(r, m, pseudo[":status"], header)
			add := http.Header{}
			x.book.Response(header, add)
			err = x.send(responseHeaders(add))
		case m.GetResponseBody() != nil:
			part := m.GetResponseBody()
			x.book.Record.Bytes += int64(len(part.GetBody()))
			x.book.Piece(part.GetBody())
			x.response.complete = x.response.complete || part.GetEndOfStream()
			err = x.send(responsePiece(part.GetBody(), part.GetEndOfStream()))
		case m.GetResponseTrailers() != nil:
			x.response.complete = true
			_, trailer := split(m.GetResponseTrailers().GetTrailers())
			x.book.Trailer(trailer)
			err = x.send(responseTrailers())
		case m.GetRequestHeaders() != nil:
			err = status.Error(codes.InvalidArgument, "the headers of a second request on one stream")
		}
		if err != nil {
			return err
		}
	}
}

// answered takes in the headers of a response: the breaker learns of them now.
func (x *exchange) answered(r request, m *ext.ProcessingRequest, status string, header http.Header) {
	code, err := strconv.Atoi(status)
	if err != nil || x.response.begun {
		return
	}
	x.move(served(m))
	x.response = response{begun: true, complete: m.GetResponseHeaders().GetEndOfStream(), own: ownAnswer(m)}
	if x.response.own != "" {
		x.book.Record.Status = code
		return
	}
	if r.responseBody == modes.ProcessingMode_NONE && !x.response.complete {
		x.response.complete, x.book.Record.Unframed = true, true // its end is not shown
	}
	x.book.Head(time.Now(), code, header)
}

// errWentOn is an attempt that Envoy gave up for the next one.
var errWentOn = fmt.Errorf("%w: Envoy went on to another upstream", record.ErrNoAnswer)

// move takes the lease to the upstream that has responded, past the fall-backs
// that Envoy tried before it.
func (x *exchange) move(to string) {
	lease := x.book.Lease
	if to == "" || to == lease.Address {
		return
	}
	tried := []string{to}
	if i := slices.Index(lease.Fallbacks, to); i > 0 {
		tried = lease.Fallbacks[:i+1]
	}
	now := time.Now()
	for _, address := range tried {
		x.book.Move(now, address, errWentOn)
	}
}

// finish ends the job by what was seen of the response.
func (x *exchange) finish() {
	switch {
	case x.book.Lease == nil: // a panic is passing
	case !x.response.begun:
		x.book.Refuse(errLeft)
	case x.response.own != "":
		x.book.End(job.None, fmt.Errorf("%w: Envoy answered itself: %s", record.ErrNoAnswer, x.response.own))
	case !x.response.complete:
		x.book.End(job.Left, errLeft)
	default:
		x.book.End(job.Whole, nil)
	}
}

// attributesKey is where Envoy puts the attributes that its configuration asks for.
const attributesKey = "envoy.filters.http.ext_proc"

// ownAnswer says why Envoy has answered without an upstream, if its
// configuration lets it tell.
func ownAnswer(m *ext.ProcessingRequest) string {
	details := m.GetAttributes()[attributesKey].GetFields()["response.code_details"].GetStringValue()
	if details == "" || details == "via_upstream" {
		return ""
	}
	return details
}
