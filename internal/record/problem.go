package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
)

// The errors for which a job gets no response of an upstream, besides those of
// dispatch, pool and intake.
var (
	// ErrShutdown is the cause of jobs cut because the process ends.
	ErrShutdown = errors.New("pilotfish is shutting down")
	// ErrGone: the submitter left before its response.
	ErrGone = errors.New("the submitter went away")
	// ErrNoAnswer: attempts were made, and none brought a response.
	ErrNoAnswer = errors.New("no upstream answered")
	// ErrFirstByte: an attempt's response did not begin in time.
	ErrFirstByte = errors.New("no answer began in time")
	// ErrDeadline: the time that the job gives itself is over.
	ErrDeadline = errors.New("the job's deadline passed")
)

// Gone says why the submitter's request, whose context has ended, ended before its response.
func Gone(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrShutdown) || errors.Is(cause, ErrGone) {
		return cause
	}
	return fmt.Errorf("%w: %w", ErrGone, cause)
}

// StatusGone is logged for a submitter that went away; nobody is there to get it.
const StatusGone = 499

// reasonHeader tells pilotfish's own responses from those of upstreams.
const reasonHeader = "Pilotfish-Reason"

// Problem is a response of pilotfish's own, in the form of RFC 9457.
type Problem struct {
	Type   string `json:"type"` // urn:pilotfish:problem: and the reason
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`

	RetryAfter int `json:"-"` // seconds, where the status is 429 or 503

	ID       string          `json:"-"` // of the job; "" without
	Reason   string          `json:"-"`
	Outcome  intake.Outcome  `json:"-"`
	Shedding intake.Shedding `json:"-"` // where the outcome is intake.Shed
}

// known is a problem and the errors that it stands for.
type known struct {
	errs []error
	Problem
}

func (k known) is(err error) bool {
	return slices.ContainsFunc(k.errs, func(target error) bool { return errors.Is(err, target) })
}

// problems are those that are not a refusal's. docs/operate.md shows them to
// people, and the refusals too.
var problems = []known{
	{[]error{ErrShutdown}, Problem{Reason: "shutting-down", Status: 503, Outcome: intake.Shed, Shedding: intake.Stopping, Title: "pilotfish is shutting down"}},
	{[]error{ErrGone, context.Canceled}, Problem{Reason: "submitter-gone", Status: StatusGone, Outcome: intake.Gone, Title: "the submitter went away"}},
	{[]error{intake.ErrTooLarge}, Problem{Reason: "body-too-large", Status: 413, Outcome: intake.TooLarge, Title: "the body is larger than job.max_body"}},
	{[]error{ErrDeadline, ErrFirstByte}, Problem{Reason: "deadline", Status: 504, Outcome: intake.Deadline, Title: "no upstream began its response in the job's time"}},
	{[]error{intake.ErrNoRoom}, Problem{Reason: "no-room", Status: 503, Outcome: intake.Shed, Shedding: intake.NoRoom, Title: "the heads and bodies of other jobs take all the memory for them"}},
	{[]error{dispatch.ErrDisplaced}, Problem{Reason: "queue-full", Status: 503, Outcome: intake.Shed, Shedding: intake.Displaced, Title: "a high job needed this job's place in the queue"}},
	{[]error{dispatch.ErrFull}, Problem{Reason: "queue-full", Status: 503, Outcome: intake.Shed, Shedding: intake.QueueFull, Title: "too many jobs wait for an upstream"}},
	{[]error{dispatch.ErrAtLimit}, Problem{Reason: "project-limit", Status: 429, Outcome: intake.Shed, Shedding: intake.ProjectLimit, Title: "the project has reached its limit of jobs in flight"}},
	{[]error{dispatch.ErrRate}, Problem{Reason: "project-rate", Status: 429, Outcome: intake.Shed, Shedding: intake.ProjectRate, Title: "the project exceeds its limit of jobs per minute"}},
	{[]error{dispatch.ErrWaited, pool.ErrNoneEligible, pool.ErrEmpty}, Problem{Reason: "none-eligible", Status: 503, Outcome: intake.Shed, Shedding: intake.Waited, Title: "no upstream may take the job now"}},
	{[]error{ErrNoAnswer, pool.ErrAllTried}, Problem{Reason: "no-answer", Status: 502, Outcome: intake.NoAnswer, Title: "no upstream answered"}},
}

// maxRetryAfter is the longest Retry-After, in seconds.
const maxRetryAfter = 3600

// ProblemOf is the one place where errors become statuses. Where an error wraps
// several that have a problem, a refusal counts, and else the first in the table.
func ProblemOf(err error) Problem {
	p := Problem{Reason: "internal", Status: 500, Outcome: intake.Broken, Title: "pilotfish failed; its log says how"}
	var refusal *Refusal
	if errors.As(err, &refusal) {
		p = Problem{Reason: refusal.Reason, Status: refusal.Status, Outcome: intake.Rejected, Title: refusal.Title}
	} else if i := slices.IndexFunc(problems, func(k known) bool { return k.is(err) }); i >= 0 {
		p = problems[i].Problem
	}
	p.RetryAfter = 1
	if later := (*dispatch.LaterError)(nil); errors.As(err, &later) {
		p.RetryAfter = int(min(max(math.Ceil(later.After.Seconds()), 1), maxRetryAfter))
	}
	p.Type = "urn:pilotfish:problem:" + p.Reason
	p.Detail = textOf(err)
	return p
}

// Body is the problem as JSON.
func (p Problem) Body() []byte {
	body, _ := json.Marshal(p) // of texts and a number, it does not fail
	return body
}

// SetHeaders sets the headers that go with the body. A 429 and a 503 say after how many seconds to
// send the job again.
func (p Problem) SetHeaders(h http.Header) {
	if p.ID != "" {
		h.Set("X-Request-Id", p.ID)
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set(reasonHeader, p.Reason)
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
		h.Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	if p.Status == http.StatusMethodNotAllowed {
		h.Set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
	}
}

// Write answers with the problem.
func (p Problem) Write(w http.ResponseWriter) {
	body := p.Body()
	p.SetHeaders(w.Header())
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // the submitter may be gone; nothing to do
}
