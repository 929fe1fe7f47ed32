// Package record holds the record of one job for logs, metrics and traces. It also
// defines the error responses that pilotfish itself sends to submitters.
package record

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// Job is the record of one job, the source of its log line, metrics and spans.
// Times are measured from the job's arrival; 0 means not observed.
type Job struct {
	// ID is the request ID: from the request, or generated. It is sent to the submitter
	// and to the upstream.
	ID      string
	Arrived time.Time
	// Method, Path and Peer describe the request. Path has no query; Peer is the client's
	// address.
	Method, Path, Peer string
	// Facts are the job's members; empty if the request was not a valid job.
	Facts intake.Facts
	// Read is how many of the job's members could be read, and Unread the reason if not all.
	Read   intake.Reading
	Unread string
	// Body is the size of the request body in bytes; -1 if unknown.
	Body int64
	// Unkept is set if the body did not fit into the memory for bodies, so the job
	// could not be retried.
	Unkept bool
	// RetryRefused is set when the retry budget was used up.
	RetryRefused bool
	Attempts     []Attempt

	// Queued is the time spent claiming upstreams, mostly in the queue.
	Queued time.Duration
	// TTFB and Total are the times to the header of an upstream's response and to the end
	// of the job. If no response began, TTFB is 0 and Completeness is Absent.
	TTFB, Total time.Duration
	// Status is the response status sent to the submitter; 499 if it disconnected before.
	Status int
	// Reason is the Pilotfish-Reason header of a response from pilotfish itself; "" for an
	// upstream's response.
	Reason string
	// Err is the error text for the log; "" without an error.
	Err string
	// Bytes is the number of bytes of the response body that were forwarded.
	Bytes   int64
	Outcome intake.Outcome
	// Shedding is the reason, if the outcome is intake.Shed.
	Shedding intake.Shedding
	// Completeness is how much of an upstream's response was forwarded.
	Completeness intake.Completeness
	// Unframed is set for a response that was ended by closing the connection, so a
	// truncated response cannot be detected.
	Unframed bool

	// Span is the job's span; nil if the job is not traced.
	Span any

	first [1]Attempt // backing array of Attempts: most jobs have one attempt
}

// Attempt is one attempt at one upstream.
type Attempt struct {
	Upstream string
	Cache    selection.Cache
	pool.Explanation
	Outcome pool.Outcome
	// Start and End are measured from the job's arrival.
	Start, End time.Duration
	// FirstByte is the time from Start to the header of the forwarded response; -1 without one.
	FirstByte time.Duration
	// Hint is the load that the upstream reported with its response; nil if none.
	Hint *pool.Hint
	// Err is the cause of the failure; "" if the attempt did not fail.
	Err string

	hint pool.Hint // storage for Hint
}

// Hinted stores the load hint of the upstream's response.
func (a *Attempt) Hinted(h pool.Hint) {
	a.hint = h
	a.Hint = &a.hint
}

// maxAttempts is the maximum number of recorded attempts. A job can make hundreds while
// all upstreams refuse connections.
const maxAttempts = 32

// Failed reports whether the job failed and its submitter did not cause the failure by disconnecting.
func (r *Job) Failed() bool { return r.Outcome != intake.Answered && r.Outcome != intake.Gone }

// Begin records an attempt that starts now. Beyond maxAttempts, the first and the latest
// attempts are kept.
func (r *Job) Begin(now time.Time, c *pool.Choice) {
	if r.Attempts == nil {
		r.Attempts = r.first[:0]
	}
	if len(r.Attempts) == maxAttempts {
		r.Attempts = slices.Concat(r.Attempts[:1], r.Attempts[2:]) // a copy, because Hint can point into an attempt
	}
	r.Attempts = append(r.Attempts, Attempt{
		Upstream: c.Address, Cache: c.Cache, Explanation: c.Explanation,
		Start: now.Sub(r.Arrived), FirstByte: -1,
	})
}

// Fail records the job's error.
func (r *Job) Fail(err error) { r.Err = textOf(err) }

// Attempt returns the current attempt.
func (r *Job) Attempt() *Attempt { return &r.Attempts[len(r.Attempts)-1] }

// EndAttempt records the end of the current attempt.
func (r *Job) EndAttempt(now time.Time, o pool.Outcome, err error) {
	a := r.Attempt()
	a.Outcome, a.Err, a.End = o, a.cause(err), now.Sub(r.Arrived)
}

// cause returns the text of the attempt's error without what the other fields contain: that this upstream did not respond.
func (a *Attempt) cause(err error) string {
	text := textOf(err)
	for _, known := range [...]string{ErrNoAnswer.Error(), a.Upstream, "dial tcp " + a.Upstream, "connect"} {
		text = strings.TrimPrefix(text, known+": ")
	}
	return text
}

// Found reports whether the job's data was cached at the upstream that responded, according to the upstream's report or,
// without one, to the state expected when it was picked. ok is false for a job without a project or without a response.
func (r *Job) Found() (found, ok bool) {
	if r.Facts.Key == 0 || len(r.Attempts) == 0 || r.Completeness == intake.Absent {
		return false, false
	}
	if a := r.Attempt(); a.Hint == nil || !a.Hint.Known {
		return a.Cache != selection.NotCached, true
	}
	return r.Attempt().Hint.Cached, true
}

// Waited returns the total time from the job's arrival to the start of its execution, in the sidecar and at the upstream.
// ok is false if the upstream did not report its queue time.
func (r *Job) Waited() (waited time.Duration, ok bool) {
	if len(r.Attempts) == 0 {
		return 0, false
	}
	last := r.Attempt()
	if last.Outcome != pool.Answered && last.Outcome != pool.Failed || last.Hint == nil || last.Hint.Waited < 0 {
		return 0, false
	}
	return last.Start + last.Hint.Waited, true
}

// Stretch returns the job's duration divided by its duration without queueing (Zhu's stretch factor). ok is false if
// that is unknown: the response must be complete, and the upstream must report its queue time.
func (r *Job) Stretch() (times float64, ok bool) {
	waited, ok := r.Waited()
	if !ok || r.Completeness != intake.Complete {
		return 0, false
	}
	unloaded := r.Total - waited
	return r.Total.Seconds() / unloaded.Seconds(), unloaded > 0
}

// Ended returns the time at which the job ended.
func (r *Job) Ended() time.Time { return r.Arrived.Add(r.Total) }

// Explain adds response headers that explain the choice of the upstream.
func (r *Job) Explain(h http.Header) {
	if len(r.Attempts) == 0 {
		return
	}
	a := r.Attempt()
	h.Set("Pilotfish-Upstream", a.Upstream)
	h.Set("Pilotfish-Cache", a.Cache.String())
	h.Set("Pilotfish-Attempts", strconv.Itoa(len(r.Attempts)))
	h.Set("Pilotfish-Why", string(a.AppendWhy(nil)))
	h.Set("Pilotfish-Read", r.Read.String())
}

// AppendWhy appends the reasons for the choice of the upstream as key=value pairs; costs are in seconds.
func (a *Attempt) AppendWhy(why []byte) []byte {
	why = appendCost(why, "cost=", a.Cost.Total)
	why = appendCost(why, " wait=", a.Cost.Wait)
	why = appendCost(why, " fetch=", a.Cost.Fetch)
	why = appendCost(why, " placement=", a.Cost.Placement)
	why = appendCost(why, " stop=", a.Cost.Stop)
	if a.RunnerUp != "" {
		why = append(append(why, " runner_up="...), a.RunnerUp...)
		why = appendCost(why, " runner_up_cost=", a.RunnerUpCost)
	}
	if a.Shadow != "" {
		why = append(append(why, " shadow="...), a.Shadow...)
		why = appendCost(why, " shadow_cost=", a.ShadowCost)
	}
	if a.Panic {
		why = append(why, " panic"...)
	}
	if a.Heavy {
		why = append(why, " heavy"...)
	}
	if a.Prefetched {
		why = append(why, " prefetched"...)
	}
	return why
}

func appendCost(why []byte, name string, seconds float64) []byte {
	why = append(why, name...)
	if seconds == 0 { // the common case
		return append(why, "0.000"...)
	}
	return strconv.AppendFloat(why, seconds, 'f', 3, 64)
}

// NotStarted reports whether a response indicates that the upstream did not start the
// job, so the job can be retried elsewhere.
func NotStarted(status int, h http.Header) bool {
	return status == http.StatusServiceUnavailable && canBeSentAgain(h)
}

// Withdrawn reports whether a response indicates that the upstream withdrew the waiting job on request.
func Withdrawn(status int, h http.Header) bool {
	return status == http.StatusServiceUnavailable && h.Get("Job-Started") == "withdrawn"
}

// Limited reports whether a response indicates that the upstream did not start the job
// because of a rate limit, so an immediate retry elsewhere is useless.
func Limited(status int, h http.Header) bool {
	return status == http.StatusTooManyRequests && canBeSentAgain(h)
}

// canBeSentAgain reports whether the headers indicate that the job was not started and can be sent again.
func canBeSentAgain(h http.Header) bool {
	return h.Get("Retry-After") != "" || h.Get("Job-Started") == "no"
}
