package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
)

// statusGone is logged for a submitter that went away; nobody is there to get it.
const statusGone = 499

// reasonHeader tells pilotfish's own answers from those of upstreams.
const reasonHeader = "Pilotfish-Reason"

// problem is an answer of pilotfish's own, in the form of RFC 9457.
type problem struct {
	Type   string `json:"type"` // urn:pilotfish:problem: and the reason
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`

	reason     string
	outcome    intake.Outcome
	shedding   intake.Shedding
	retryAfter time.Duration
}

// problemOf is the one place where errors become statuses.
func problemOf(err error) problem {
	is := func(target error) bool { return errors.Is(err, target) }
	var p problem
	switch {
	case is(ErrShutdown):
		p = problem{reason: "shutting-down", Status: 503, outcome: intake.Shed, shedding: intake.Stopping, Title: "pilotfish is shutting down"}
	case is(errGone), is(context.Canceled):
		p = problem{reason: "submitter-gone", Status: statusGone, outcome: intake.Gone, Title: "the submitter went away"}
	case is(errMalformed):
		p = problem{reason: "malformed-job", Status: 400, outcome: intake.Rejected, Title: "the body is not a valid job"}
	case is(errFraming):
		p = problem{reason: "malformed-body", Status: 400, outcome: intake.Rejected, Title: "the body's framing is broken"}
	case is(errTarget):
		p = problem{reason: "bad-target", Status: 400, outcome: intake.Rejected, Title: "the request target is refused"}
	case is(errCrossSite):
		p = problem{reason: "cross-site", Status: 403, outcome: intake.Rejected, Title: "requests of web pages are refused"}
	case is(errForeignHost):
		p = problem{reason: "foreign-host", Status: 403, outcome: intake.Rejected, Title: "the Host header is refused"}
	case is(errMethod):
		p = problem{reason: "method-refused", Status: 405, outcome: intake.Rejected, Title: "the method is refused"}
	case is(errSlow):
		p = problem{reason: "slow-body", Status: 408, outcome: intake.Rejected, Title: "the body came too slowly"}
	case is(intake.ErrTooLarge):
		p = problem{reason: "body-too-large", Status: 413, outcome: intake.TooLarge, Title: "the body is too large"}
	case is(errUpgrade):
		p = problem{reason: "upgrade-refused", Status: 501, outcome: intake.Rejected, Title: "protocols are not switched"}
	case is(errDeadline), is(errFirstByte):
		p = problem{reason: "deadline", Status: 504, outcome: intake.Deadline, Title: "no answer began in time"}
	case is(dispatch.ErrDisplaced):
		p = problem{reason: "queue-full", Status: 503, outcome: intake.Shed, shedding: intake.Displaced, Title: "a high job needed the place"}
	case is(dispatch.ErrFull):
		p = problem{reason: "queue-full", Status: 503, outcome: intake.Shed, shedding: intake.QueueFull, Title: "too many jobs wait for an upstream"}
	case is(dispatch.ErrWaited), is(pool.ErrNoneEligible), is(pool.ErrEmpty):
		p = problem{reason: "none-eligible", Status: 503, outcome: intake.Shed, shedding: intake.Waited, Title: "no upstream may take the job now"}
	case is(errNoAnswer), is(pool.ErrAllTried):
		p = problem{reason: "no-answer", Status: 502, outcome: intake.NoAnswer, Title: "no upstream answered"}
	default:
		p = problem{reason: "internal", Status: 500, outcome: intake.Broken, Title: "pilotfish failed"}
	}
	p.Type = "urn:pilotfish:problem:" + p.reason
	p.Detail = err.Error()
	return p
}

// write answers with the problem.
func (p problem) write(w http.ResponseWriter) {
	body, err := json.Marshal(p)
	if err != nil {
		panic("BUG: proxy: a problem of texts and a number does not marshal: " + err.Error())
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set(reasonHeader, p.reason)
	if p.Status == http.StatusServiceUnavailable {
		h.Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(p.retryAfter.Seconds())))))
	}
	if p.Status == http.StatusMethodNotAllowed {
		h.Set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // a submitter that is gone is none of its business
}
