package ruleserver

import (
	"cmp"
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
	errDraining       = errors.New("the server is draining: it accepts no new jobs")
	errEncoded        = errors.New("the body has a Content-Encoding: send it unencoded")
	errFull           = errors.New("the server accepts no more jobs")
	errUnknownProject = errors.New("unknown project")
)

// problem is a problem document (RFC 9457): the body of an error response.
type problem struct {
	Type   string `json:"type"` // stable, for programs
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Path   string `json:"path,omitzero"` // JSON Pointer to the malformed member

	retry   bool    // the same job can succeed later or elsewhere
	outcome Outcome // of the job

	withdrawn bool // the job was withdrawn on request
}

// problems maps error values to problems.
var problems = []struct {
	err error
	problem
}{
	{errCost, problem{Type: "malformed-cost", Status: http.StatusBadRequest}},
	{errBody, problem{Type: "body-incomplete", Status: http.StatusBadRequest}},
	{errEncoded, problem{Type: "body-encoded", Status: http.StatusUnsupportedMediaType}},
	{errUnknownProject, problem{Type: "unknown-project", Status: http.StatusNotFound}},
	{errDraining, problem{Type: "draining", Status: http.StatusServiceUnavailable, retry: true}},
	{errFull, problem{Type: "full", Status: http.StatusServiceUnavailable, retry: true}},
	{executor.ErrQueueTimeout, problem{Type: "queue-timeout", Status: http.StatusServiceUnavailable, retry: true, outcome: outcomeTimeout}},
	{executor.ErrWithdrawn, problem{Type: "withdrawn", Status: http.StatusServiceUnavailable, retry: true, withdrawn: true}},
	{executor.ErrEvaluateTimeout, problem{Type: "evaluate-timeout", Status: http.StatusGatewayTimeout, outcome: outcomeTimeout}},
	{executor.ErrClosed, problem{Type: "closing", Status: http.StatusServiceUnavailable, retry: true, outcome: outcomeFailed}},
	// Nobody reads this response. 499 is the status that nginx logs.
	{context.Canceled, problem{Type: "submitter-gone", Status: 499, outcome: outcomeCancelled}},
}

// problemOf maps an error to its problem.
func problemOf(err error) problem {
	p := problem{Type: "feed-unreadable", Status: http.StatusInternalServerError, outcome: outcomeFailed}
	for _, row := range problems {
		if errors.Is(err, row.err) {
			p = row.problem
			break
		}
	}
	if malformed, ok := errors.AsType[*rules.Malformed](err); ok {
		p = problem{Type: "malformed-job", Status: http.StatusBadRequest, Path: string(malformed.Path)}
	} else if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		p = problem{Type: "body-too-large", Status: http.StatusRequestEntityTooLarge}
	} else if _, ok := errors.AsType[*rules.TooLarge](err); ok {
		p = problem{Type: "result-too-large", Status: http.StatusUnprocessableEntity, outcome: outcomeFailed}
	}
	p.Type, p.Detail, p.outcome = "urn:ruleserver:"+p.Type, err.Error(), cmp.Or(p.outcome, outcomeRejected)
	return p
}

// startedHeader is "no" in a refusal of a job that has not started.
const startedHeader = "Job-Started"

// write responds with the problem. If the job has not started, the response states this,
// so that the job can be sent elsewhere without running twice.
func (p problem) write(w http.ResponseWriter, started bool) {
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	if p.retry {
		header.Set("Retry-After", "1")
		switch {
		case p.withdrawn:
			header.Set(startedHeader, "withdrawn")
		case !started:
			header.Set(startedHeader, "no")
		}
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic("BUG: ruleserver: a problem cannot be written: " + err.Error())
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(text, '\n')) // it fails if the client has closed the connection
}
