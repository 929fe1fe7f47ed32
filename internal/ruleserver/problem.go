package ruleserver

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-json-experiment/json"

	"example.org/pilotfish/internal/ruleserver/executor"
	"example.org/pilotfish/internal/ruleserver/rules"
)

// problem is an answer in place of a feed (RFC 9457).
type problem struct {
	Type   string `json:"type"` // stable, for programs
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Path   string `json:"path,omitzero"` // JSON Pointer to what is malformed

	retry   bool    // the same job may fare better later or elsewhere
	outcome Outcome // of the job that it answers
}

// problemOf is the one place where errors become statuses.
func problemOf(err error) problem {
	p := problem{Detail: err.Error(), outcome: Rejected}
	is := func(target error) bool { return errors.Is(err, target) }
	var (
		malformed *rules.Malformed
		grown     *rules.TooLarge
		body      *http.MaxBytesError
		full      errFull
		broken    errBody
		costly    errCost
	)
	switch {
	case errors.As(err, &malformed):
		p.Type, p.Status, p.Path = "malformed-job", http.StatusBadRequest, string(malformed.Path)
	case errors.As(err, &costly):
		p.Type, p.Status = "malformed-cost", http.StatusBadRequest
	case errors.As(err, &body):
		p.Type, p.Status = "body-too-large", http.StatusRequestEntityTooLarge
	case errors.As(err, &broken):
		p.Type, p.Status = "body-incomplete", http.StatusBadRequest
	case is(errEncoded):
		p.Type, p.Status = "body-encoded", http.StatusUnsupportedMediaType
	case is(errUnknownProject):
		p.Type, p.Status = "unknown-project", http.StatusNotFound
	case is(errDraining):
		p.Type, p.Status, p.retry = "draining", http.StatusServiceUnavailable, true
	case errors.As(err, &full):
		p.Type, p.Status, p.retry = "full", http.StatusServiceUnavailable, true
	case is(executor.ErrQueueTimeout):
		p.Type, p.Status, p.retry, p.outcome = "queue-timeout", http.StatusServiceUnavailable, true, Timeout
	case is(executor.ErrEvaluateTimeout):
		p.Type, p.Status, p.outcome = "evaluate-timeout", http.StatusGatewayTimeout, Timeout
	case is(executor.ErrClosed):
		p.Type, p.Status, p.retry, p.outcome = "closing", http.StatusServiceUnavailable, true, Failed
	case is(context.Canceled):
		// Nobody reads this answer; the status is what nginx logs for it.
		p.Type, p.Status, p.outcome = "submitter-gone", 499, Cancelled
	case is(errFeedChanged):
		p.Type, p.Status, p.retry, p.outcome = "feed-changed", http.StatusServiceUnavailable, true, Failed
	case errors.As(err, &grown):
		p.Type, p.Status, p.outcome = "result-too-large", http.StatusUnprocessableEntity, Failed
	default:
		p.Type, p.Status, p.outcome = "feed-unreadable", http.StatusInternalServerError, Failed
	}
	p.Type = "urn:ruleserver:" + p.Type
	return p
}

// write answers with the problem. A job that did not start says so: it may be
// retried elsewhere without fear of doing it twice.
func (p problem) write(w http.ResponseWriter, started bool) {
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	if p.retry {
		header.Set("Retry-After", "1")
		if !started {
			header.Set("Job-Started", "no")
		}
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic("ruleserver: a problem cannot be written: " + err.Error())
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(text, '\n')) // who does not read it has it no better
}
