package ruleserver

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-json-experiment/json"

	"example.org/pilotfish/internal/ruleserver/executor"
	"example.org/pilotfish/internal/ruleserver/rules"
)

var (
	errBody           = errors.New("reading the body")
	errCost           = errors.New("header " + costHeader)
	errDraining       = errors.New("the server is draining: it takes no new jobs")
	errEncoded        = errors.New("the body has a Content-Encoding: send it as it is")
	errFull           = errors.New("the server takes no more jobs")
	errUnknownProject = errors.New("unknown project")
)

// problem is the body of a response without a feed (RFC 9457).
type problem struct {
	Type   string `json:"type"` // stable, for programs
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Path   string `json:"path,omitzero"` // JSON Pointer to what is malformed

	retry   bool    // the same job may succeed later or elsewhere
	outcome Outcome // of the job
}

// problemOf maps every error to its status.
func problemOf(err error) problem {
	p := problem{Detail: err.Error(), outcome: outcomeRejected}
	is := func(target error) bool { return errors.Is(err, target) }
	var (
		malformed *rules.Malformed
		grown     *rules.TooLarge
		body      *http.MaxBytesError
	)
	switch {
	case errors.As(err, &malformed):
		p.Type, p.Status, p.Path = "malformed-job", http.StatusBadRequest, string(malformed.Path)
	case is(errCost):
		p.Type, p.Status = "malformed-cost", http.StatusBadRequest
	case errors.As(err, &body):
		p.Type, p.Status = "body-too-large", http.StatusRequestEntityTooLarge
	case is(errBody):
		p.Type, p.Status = "body-incomplete", http.StatusBadRequest
	case is(errEncoded):
		p.Type, p.Status = "body-encoded", http.StatusUnsupportedMediaType
	case is(errUnknownProject):
		p.Type, p.Status = "unknown-project", http.StatusNotFound
	case is(errDraining):
		p.Type, p.Status, p.retry = "draining", http.StatusServiceUnavailable, true
	case is(errFull):
		p.Type, p.Status, p.retry = "full", http.StatusServiceUnavailable, true
	case is(executor.ErrQueueTimeout):
		p.Type, p.Status, p.retry, p.outcome = "queue-timeout", http.StatusServiceUnavailable, true, outcomeTimeout
	case is(executor.ErrEvaluateTimeout):
		p.Type, p.Status, p.outcome = "evaluate-timeout", http.StatusGatewayTimeout, outcomeTimeout
	case is(executor.ErrClosed):
		p.Type, p.Status, p.retry, p.outcome = "closing", http.StatusServiceUnavailable, true, outcomeFailed
	case is(context.Canceled):
		// Nobody reads this response. nginx logs the same status.
		p.Type, p.Status, p.outcome = "submitter-gone", 499, outcomeCancelled
	case errors.As(err, &grown):
		p.Type, p.Status, p.outcome = "result-too-large", http.StatusUnprocessableEntity, outcomeFailed
	default:
		p.Type, p.Status, p.outcome = "feed-unreadable", http.StatusInternalServerError, outcomeFailed
	}
	p.Type = "urn:ruleserver:" + p.Type
	return p
}

// startedHeader says in a refusal that the job has not begun: "no".
const startedHeader = "Job-Started"

// write responds with the problem. If the job has not started, the response says so:
// then it can be sent elsewhere without running twice.
func (p problem) write(w http.ResponseWriter, started bool) {
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	if p.retry {
		header.Set("Retry-After", "1")
		if !started {
			header.Set(startedHeader, "no")
		}
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic("BUG: ruleserver: a problem cannot be written: " + err.Error())
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(text, '\n')) // if it fails, the client has left
}
