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

// The errors of jobs without an upstream's response, in addition to the errors of
// dispatch, pool and intake.
var (
	// ErrShutdown: the job was aborted because pilotfish shuts down.
	ErrShutdown = errors.New("pilotfish is shutting down")
	// ErrAborted wraps ErrShutdown: an upstream may have started the job, so it could run twice if the submitter sends it again.
	ErrAborted = fmt.Errorf("%w: the job was aborted before a response began, and an upstream may have started it", ErrShutdown)
	// ErrGone: the submitter disconnected before the end of the response.
	ErrGone = errors.New("the submitter disconnected")
	// ErrNoAnswer: all attempts failed without a response.
	ErrNoAnswer = errors.New("no upstream responded")
	// ErrNotDialed: pilotfish could not dial. The cause is a shortage on its machine or a failure of its resolver, not an upstream.
	ErrNotDialed = errors.New("pilotfish could not open a connection")
	// ErrFirstByte: the first-byte timeout of an attempt passed.
	ErrFirstByte = errors.New("no response began in time")
	// ErrDeadline: the job's own deadline passed.
	ErrDeadline = errors.New("the job's deadline passed")
)

// Gone returns the reason why the context of the submitter's request ended: ErrShutdown, or an error that wraps ErrGone.
func Gone(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrShutdown) || errors.Is(cause, ErrGone) {
		return cause
	}
	return fmt.Errorf("%w: %w", ErrGone, cause)
}

// StatusGone is logged if the submitter disconnected; it is never sent.
const StatusGone = 499

// reasonHeader marks pilotfish's own error responses, as opposed to upstreams' responses.
const reasonHeader = "Pilotfish-Reason"

// Problem is an error response of pilotfish itself, in the format of RFC 9457.
type Problem struct {
	Type   string `json:"type"` // urn:pilotfish:problem: and the reason
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`

	RetryAfter int `json:"-"` // seconds, if the status is 429 or 503

	ID       string          `json:"-"` // request ID of the job; "" if it has none
	Reason   string          `json:"-"`
	Outcome  intake.Outcome  `json:"-"`
	Shedding intake.Shedding `json:"-"` // if the outcome is intake.Shed
}

// known is a problem and the errors that lead to it.
type known struct {
	errs []error
	Problem
}

func (k known) is(err error) bool {
	return slices.ContainsFunc(k.errs, func(target error) bool { return errors.Is(err, target) })
}

// problems lists the problems except those of a Refusal. docs/operate.md documents all of
// them.
var problems = []known{
	{[]error{ErrAborted}, Problem{Reason: "shutting-down", Status: 502, Outcome: intake.NoAnswer, Title: "aborted when shutdown.grace was over; an upstream may have started the job"}},
	{[]error{ErrShutdown}, Problem{Reason: "shutting-down", Status: 503, Outcome: intake.Shed, Shedding: intake.Stopping, Title: "pilotfish is shutting down"}},
	{[]error{ErrGone, context.Canceled}, Problem{Reason: "submitter-gone", Status: StatusGone, Outcome: intake.Gone, Title: "the submitter disconnected"}},
	{[]error{intake.ErrTooLarge}, Problem{Reason: "body-too-large", Status: 413, Outcome: intake.TooLarge, Title: "the body is larger than job.max_body"}},
	{[]error{ErrDeadline, ErrFirstByte}, Problem{Reason: "deadline", Status: 504, Outcome: intake.Deadline, Title: "no upstream began its response in the job's time"}},
	{[]error{intake.ErrNoRoom}, Problem{Reason: "no-room", Status: 503, Outcome: intake.Shed, Shedding: intake.NoRoom, Title: "the memory for headers and bodies is used up by other jobs"}},
	{[]error{dispatch.ErrDisplaced}, Problem{Reason: "queue-full", Status: 503, Outcome: intake.Shed, Shedding: intake.Displaced, Title: "displaced from the full queue by a job of high priority"}},
	{[]error{dispatch.ErrFull}, Problem{Reason: "queue-full", Status: 503, Outcome: intake.Shed, Shedding: intake.QueueFull, Title: "too many jobs wait for an upstream"}},
	{[]error{dispatch.ErrAtLimit}, Problem{Reason: "project-limit", Status: 429, Outcome: intake.Shed, Shedding: intake.ProjectLimit, Title: "the project has reached its limit of jobs in flight"}},
	{[]error{dispatch.ErrRate}, Problem{Reason: "project-rate", Status: 429, Outcome: intake.Shed, Shedding: intake.ProjectRate, Title: "the project exceeds its limit of jobs per minute"}},
	{[]error{dispatch.ErrWaited, pool.ErrNoneEligible, pool.ErrEmpty}, Problem{Reason: "none-eligible", Status: 503, Outcome: intake.Shed, Shedding: intake.Waited, Title: "no upstream was eligible within the job's queue timeout"}},
	{[]error{ErrNotDialed}, Problem{Reason: "not-dialed", Status: 503, Outcome: intake.NoAnswer, Title: "pilotfish could not open a connection: file descriptors, ports or memory are used up, or the resolver fails"}},
	{[]error{ErrNoAnswer, pool.ErrAllTried}, Problem{Reason: "no-response", Status: 502, Outcome: intake.NoAnswer, Title: "no upstream responded"}},
}

// maxRetryAfter is the maximum Retry-After, in seconds.
const maxRetryAfter = 3600

// ProblemOf maps an error to its response; no other function chooses statuses. If an
// error wraps several known errors, a Refusal wins, otherwise the first one in problems.
func ProblemOf(err error) Problem {
	p := Problem{Reason: "internal", Status: 500, Outcome: intake.Broken, Title: "internal error of pilotfish; see its log"}
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		p = Problem{Reason: refusal.Reason, Status: refusal.Status, Outcome: intake.Rejected, Title: refusal.Title}
	} else if i := slices.IndexFunc(problems, func(k known) bool { return k.is(err) }); i >= 0 {
		p = problems[i].Problem
	}
	p.RetryAfter = 1
	if later, ok := errors.AsType[*dispatch.LaterError](err); ok {
		p.RetryAfter = int(min(max(math.Ceil(later.After.Seconds()), 1), maxRetryAfter))
	}
	p.Type = "urn:pilotfish:problem:" + p.Reason
	p.Detail = textOf(err)
	return p
}

// Body returns the problem as JSON.
func (p Problem) Body() []byte {
	body, _ := json.Marshal(p) // strings and a number cannot fail
	return body
}

// SetHeaders sets the response headers of the problem, such as Retry-After for 429 and 503.
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

// Write sends the problem as the response.
func (p Problem) Write(w http.ResponseWriter) {
	body := p.Body()
	p.SetHeaders(w.Header())
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // an error means that the submitter disconnected
}
