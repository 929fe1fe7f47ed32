// Package record holds what happened to one job, and the response that a
// submitter gets when no upstream's response is passed on.
package record

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// Job is what happened to one job: the source of its log line and of its
// metrics. Times are from the job's arrival; 0 is not seen.
type Job struct {
	// ID names the job in logs: the one that the request brought along, or one of
	// pilotfish's own. In both cases submitter and upstream are told.
	ID      string
	Arrived time.Time
	// Method, Path and Peer are the request's: its path has no query, and its peer is the
	// other end of its connection.
	Method, Path, Peer string
	// Facts is what the job said of itself; empty if the request was no job.
	Facts intake.Facts
	// Read is how much of it could be read, and Unread why that is not all.
	Read   intake.Reading
	Unread string
	// Body is the body's size in bytes, -1 unknown.
	Body int64
	// Unkept is set when the body exceeded the budget of kept bytes, so that
	// it could be sent only once.
	Unkept bool
	// RetryRefused is set when the retry budget was used up.
	RetryRefused bool
	Attempts     []Attempt

	// Queued is the time spent in claims: in the queue, mostly.
	Queued time.Duration
	// TTFB and Total are the times to the head of an upstream's response and to
	// the end of the job. Without a head there is no TTFB, and Completeness is Absent.
	TTFB, Total time.Duration
	// Status is what the submitter was answered, 499 if it was gone before.
	Status int
	// Reason is the word for an answer of pilotfish's own, as in the
	// Pilotfish-Reason header; "" for an upstream's.
	Reason string
	// Err is what went wrong, for the log; "" if nothing did.
	Err string
	// Bytes is how much of the answer's body was passed on.
	Bytes   int64
	Outcome intake.Outcome
	// Shedding is why, where the outcome is intake.Shed.
	Shedding intake.Shedding
	// Completeness is how much of an upstream's response was passed on.
	Completeness intake.Completeness
	// Unframed is set for a complete response that ended by closing the connection:
	// nothing tells whether the upstream had more to say.
	Unframed bool

	// Span is the tracer's own of the job; nil where it is not traced.
	Span any

	first [1]Attempt // most jobs have no other
}

// Attempt is one try at one upstream.
type Attempt struct {
	Upstream string
	Cache    selection.Cache
	pool.Why
	Outcome pool.Outcome
	// Start and End are from the job's arrival.
	Start, End time.Duration
	// FirstByte is from the start to the head of the response that is passed on, -1 without one.
	FirstByte time.Duration
	// Hint is what the upstream told of its load; nil when nothing.
	Hint *pool.Hint
	// Err is why it failed; "" if it did not.
	Err string

	hint pool.Hint // what Hint is, of most attempts
}

// Told notes what the upstream tells of its load.
func (a *Attempt) Told(h pool.Hint) {
	a.hint = h
	a.Hint = &a.hint
}

// maxAttempts bounds the attempts that are kept of a job: one that waits while
// every upstream refuses its connections may make hundreds.
const maxAttempts = 32

// Failed reports whether the job failed, but for its submitter.
func (r *Job) Failed() bool { return r.Outcome != intake.Answered && r.Outcome != intake.Gone }

// Begin notes an attempt that begins now. Of more than maxAttempts the first one and the
// latest are kept.
func (r *Job) Begin(now time.Time, c *pool.Choice) {
	if r.Attempts == nil {
		r.Attempts = r.first[:0]
	}
	if len(r.Attempts) == maxAttempts {
		r.Attempts = slices.Concat(r.Attempts[:1], r.Attempts[2:]) // a copy, for Hint may lead into an attempt
	}
	r.Attempts = append(r.Attempts, Attempt{
		Upstream: c.Address, Cache: c.Cache, Why: c.Why,
		Start: now.Sub(r.Arrived), FirstByte: -1,
	})
}

// Fail notes what went wrong with the job.
func (r *Job) Fail(err error) { r.Err = textOf(err) }

// Attempt is the attempt under way.
func (r *Job) Attempt() *Attempt { return &r.Attempts[len(r.Attempts)-1] }

// EndAttempt notes that the attempt under way ends now.
func (r *Job) EndAttempt(now time.Time, o pool.Outcome, err error) {
	a := r.Attempt()
	a.Outcome, a.Err, a.End = o, textOf(err), now.Sub(r.Arrived)
}

// Found reports whether the job found its data at the upstream that responded: as the upstream reports, or else as was
// believed when it was picked. ok is false for a job that needs no data or got no response.
func (r *Job) Found() (found, ok bool) {
	if r.Facts.Key == 0 || len(r.Attempts) == 0 || r.Completeness == intake.Absent {
		return false, false
	}
	if a := r.Attempt(); a.Hint == nil || !a.Hint.Known {
		return a.Cache != selection.NotCached, true
	}
	return r.Attempt().Hint.Cached, true
}

// Waited is how long the job waited for an upstream and then at the upstream until its execution started. ok is
// false where the upstream did not report its part.
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

// Stretch is how many times as long the job took as it would without load (Zhu's stretch factor). ok is false where
// that is not known: the response must be whole, and the upstream must report the job's wait.
func (r *Job) Stretch() (times float64, ok bool) {
	waited, ok := r.Waited()
	if !ok || r.Completeness != intake.Complete {
		return 0, false
	}
	unloaded := r.Total - waited
	return r.Total.Seconds() / unloaded.Seconds(), unloaded > 0
}

// Ended is when the job ended.
func (r *Job) Ended() time.Time { return r.Arrived.Add(r.Total) }

// Explain adds headers about the decision.
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

// AppendWhy appends a few words on what spoke for the upstream; costs are in seconds.
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
	if seconds == 0 { // as most are
		return append(why, "0.000"...)
	}
	return strconv.AppendFloat(why, seconds, 'f', 3, 64)
}

// NotStarted reports whether a response says that nothing was done for the job,
// so that it may go elsewhere.
func NotStarted(status int, h http.Header) bool {
	return status == http.StatusServiceUnavailable && undone(h)
}

// Limited reports whether a response says that nothing was done for the job, and that
// it need not be sent elsewhere at once.
func Limited(status int, h http.Header) bool {
	return status == http.StatusTooManyRequests && undone(h)
}

// undone reports whether a submitter that reads this header may send the job again.
func undone(h http.Header) bool {
	return h.Get("Retry-After") != "" || h.Get("Job-Started") == "no"
}
