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
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// response is what Envoy has shown of the response.
type response struct {
	begun, complete bool
	// own says why Envoy has answered itself; "" for an upstream's response.
	own        string
	notStarted bool // the upstream says that it has done nothing for the job
}

// follow replies to what Envoy shows after it was told the destination, in
// whatever order it comes, until the stream ends.
func (x *exchange) follow(r request, b body) error {
	for m := range x.in {
		var err error
		switch {
		case m.GetRequestBody() != nil:
			err = x.passRequest(b, m.GetRequestBody())
		case m.GetRequestTrailers() != nil:
			err = x.send(requestTrailers())
		case m.GetResponseHeaders() != nil:
			pseudo, header := split(m.GetResponseHeaders().GetHeaders())
			x.answered(r, m, pseudo[":status"], header)
			err = x.send(responseHeaders(x.explained(header)))
		case m.GetResponseBody() != nil:
			part := m.GetResponseBody()
			x.record.Bytes += int64(len(part.GetBody()))
			x.response.complete = x.response.complete || part.GetEndOfStream()
			err = x.send(responsePiece(part.GetBody(), part.GetEndOfStream()))
		case m.GetResponseTrailers() != nil:
			x.response.complete = true
			x.told(m.GetResponseTrailers())
			err = x.send(responseTrailers())
		case m.GetRequestHeaders() != nil:
			err = status.Error(codes.InvalidArgument, "the headers of a second request on one stream")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// passRequest passes on what comes of a request's body after it was placed.
func (x *exchange) passRequest(b body, part *ext.HttpBody) error {
	if b.kept == nil {
		return status.Error(codes.InvalidArgument, "a piece of a body that has ended")
	}
	return x.send(requestPiece(part.GetBody(), part.GetEndOfStream()))
}

// answered takes in the headers of a response: the breaker learns of them now.
func (x *exchange) answered(r request, m *ext.ProcessingRequest, status string, header http.Header) {
	code, err := strconv.Atoi(status)
	if err != nil || x.response.begun {
		return
	}
	x.move(served(m))
	x.record.Status = code
	x.response = response{
		begun:      true,
		complete:   m.GetResponseHeaders().GetEndOfStream(),
		own:        ownAnswer(m),
		notStarted: record.NotStarted(code, header),
	}
	if r.responseBody == modes.ProcessingMode_NONE && !x.response.complete && x.response.own == "" {
		x.response.complete, x.record.Unframed = true, true // its end is not shown
	}
	if x.response.own != "" {
		return
	}
	now := time.Now()
	x.record.TTFB = now.Sub(x.record.Arrived)
	x.record.Completeness = intake.Partial
	var hint *pool.Hint
	if h, ok := x.f.cfg.Hint(header, now); ok {
		hint = &h
		x.record.Attempt().Hint = hint
	}
	if !x.response.notStarted {
		x.lease.Answered(now, code < http.StatusInternalServerError, hint)
	}
}

// told takes in the load that the upstream tells at the end of its response.
func (x *exchange) told(trailers *ext.HttpTrailers) {
	_, trailer := split(trailers.GetTrailers())
	now := time.Now()
	hint, ok := x.f.cfg.Hint(trailer, now)
	if !ok || !x.response.begun || x.response.own != "" {
		return
	}
	if last := x.record.Attempt(); last.Hint == nil {
		last.Hint = &hint
	}
	x.lease.Told(now, &hint)
}

// errWentOn is an attempt that Envoy gave up for the next one.
var errWentOn = fmt.Errorf("%w: Envoy went on to another upstream", record.ErrNoAnswer)

// move takes the lease to the upstream that has responded, past the fall-backs
// that Envoy tried before it.
func (x *exchange) move(to string) {
	if to == "" || to == x.lease.Address {
		return
	}
	tried := []string{to}
	if i := slices.Index(x.lease.Fallbacks, to); i > 0 {
		tried = x.lease.Fallbacks[:i+1]
	}
	now := time.Now()
	for _, address := range tried {
		x.record.EndAttempt(now, pool.Refused, errWentOn)
		x.lease.Move(now, address)
		x.record.Begin(now, *x.lease.Choice)
	}
}

// explained are the headers to add to a response: the job's name, and the
// decision if that is asked for.
func (x *exchange) explained(h http.Header) http.Header {
	add := x.identified(h)
	if x.f.cfg.ExplainHeaders {
		x.record.Explain(add)
	}
	return add
}

// finish ends the lease by what was seen of the response.
func (x *exchange) finish() {
	j := x.record
	if x.lease == nil { // a panic is passing
		return
	}
	outcome := pool.Answered
	switch {
	case !x.response.begun:
		outcome, j.Outcome, j.Status, j.Err = pool.Gone, intake.Gone, record.StatusGone, errLeft
	case x.response.own != "":
		outcome, j.Outcome = pool.Refused, intake.NoAnswer
		j.Err = fmt.Errorf("%w: Envoy answered itself: %s", record.ErrNoAnswer, x.response.own)
	case !x.response.complete:
		outcome, j.Outcome, j.Err = pool.Gone, intake.Gone, errLeft
	case x.response.notStarted:
		outcome, j.Outcome = pool.NotStarted, intake.Failed
	case j.Status >= http.StatusInternalServerError:
		outcome, j.Outcome = pool.Failed, intake.Failed
	default:
		j.Outcome = intake.Answered
	}
	if x.response.complete && x.response.own == "" {
		j.Completeness = intake.Complete
	}
	now := time.Now()
	j.EndAttempt(now, outcome, j.Err)
	x.lease.Done(now, outcome)
	x.lease = nil
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
