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
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/trace"
)

// Job is what happened to one job: the source of its log line and of its
// metrics. Times are from the job's arrival; 0 is not seen.
type Job struct {
	// ID names the job in logs: the one that the request brought along, or one of
	// pilotfish's own. In both cases submitter and upstream are told.
	ID      string
	Arrived time.Time
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
	// Err is what went wrong, for the log; nil if nothing did.
	Err error
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

	// Span is the job's place in a trace; nil where it is not traced.
	Span *Span

	first [1]Attempt // most jobs have no other
}

// Span is where a job stands in a trace (W3C Trace Context).
type Span struct {
	Trace      [16]byte
	ID, Parent [8]byte // Parent is all 0 where the trace begins with the job
}

// Attempt is one try at one upstream.
type Attempt struct {
	Upstream string
	Cache    selection.Cache
	Cost     selection.Cost
	// RunnerUp and RunnerUpCost are as in pool.Choice.
	RunnerUp     string
	RunnerUpCost float64
	Panic        bool
	Outcome      pool.Outcome
	// Start and End are from the job's arrival.
	Start, End time.Duration
	// Hint is what the upstream told of its load; nil when nothing.
	Hint *pool.Hint
	// Repeated is set when a pooled connection turned out dead and the job was
	// sent again to the same upstream, on a new one.
	Repeated bool
	// Err is why it failed.
	Err error
}

// maxAttempts bounds the attempts that are kept of a job: one that waits while
// every upstream refuses its connections may make hundreds.
const maxAttempts = 32

// Describe notes what the request says of its job.
func (r *Job) Describe(d *intake.Description) {
	r.Facts, r.Read, r.Unread = d.Facts, d.Reading, d.Unread
}

// PassedUnread reports whether the job has a body that was passed on without being read.
func (r *Job) PassedUnread() bool { return r.Unread != "" && r.Body != 0 }

// Begin notes an attempt that begins now. Of more than maxAttempts the first one and the
// latest are kept.
func (r *Job) Begin(now time.Time, c pool.Choice) {
	if r.Attempts == nil {
		r.Attempts = r.first[:0]
	}
	if len(r.Attempts) == maxAttempts {
		r.Attempts = slices.Delete(r.Attempts, 1, 2)
	}
	r.Attempts = append(r.Attempts, Attempt{
		Upstream: c.Address, Cache: c.Cache, Cost: c.Cost, Panic: c.Panic,
		RunnerUp: c.RunnerUp, RunnerUpCost: c.RunnerUpCost,
		Start: now.Sub(r.Arrived),
	})
}

// Attempt is the attempt under way.
func (r *Job) Attempt() *Attempt { return &r.Attempts[len(r.Attempts)-1] }

// EndAttempt notes that the attempt under way ends now.
func (r *Job) EndAttempt(now time.Time, o pool.Outcome, err error) {
	a := r.Attempt()
	a.Outcome, a.Err, a.End = o, err, now.Sub(r.Arrived)
}

// Quality is the key figures of the job. Metrics, log, trace and page tell the same.
// room, which is empty, may hold the attempts.
func (r *Job) Quality(room []quality.Attempt) quality.Job {
	j := quality.Job{
		Priority: r.Facts.Priority, Outcome: r.Outcome, Completeness: r.Completeness,
		Arrived: r.Arrived, FirstByte: r.TTFB, LastByte: r.Total, Waited: -1,
		Attempts: slices.Grow(room, len(r.Attempts))[:len(r.Attempts)],
	}
	for i := range r.Attempts {
		a := &r.Attempts[i]
		j.Attempts[i] = quality.Attempt{Upstream: a.Upstream, Outcome: a.Outcome, Start: a.Start, End: a.End}
	}
	if n := len(r.Attempts); n > 0 {
		last := &r.Attempts[n-1]
		if (last.Outcome == pool.Answered || last.Outcome == pool.Failed) && last.Hint != nil && last.Hint.Waited >= 0 {
			j.Waited = last.Start + last.Hint.Waited
		}
	}
	return j
}

// Trace is the job's line in a trace that began at an instant. What was measured is as
// the submitter saw it; of what the job costs, only the fetch is known, where the
// upstream tells it.
func (r *Job) Trace(start time.Time) trace.Job {
	seconds := func(d time.Duration) *float64 { return new(d.Seconds()) }
	f := &r.Facts
	m := &trace.Measured{Outcome: r.Outcome.String(), Queued: seconds(r.Queued)}
	t := trace.Job{
		Offset:  max(0, r.Arrived.Sub(start).Seconds()),
		Project: trace.Project(f.Project.String()), Priority: f.Priority,
		Timeouts: trace.Timeouts{Queue: f.Queue.Seconds(), Evaluate: f.Evaluate.Seconds(), Stream: f.Stream.Seconds()},
		Measured: m,
	}
	if r.Completeness != intake.Absent {
		m.TTFB = seconds(r.TTFB)
	}
	if r.Completeness == intake.Complete {
		m.TTLB = seconds(r.Total)
	}
	for i := range r.Attempts {
		a := &r.Attempts[i]
		m.Attempts = append(m.Attempts, trace.Attempt{
			Upstream: a.Upstream, Outcome: a.Outcome.String(), Start: a.Start.Seconds(), End: max(a.Start, a.End).Seconds(),
		})
	}
	if n := len(r.Attempts); n > 0 && r.Completeness != intake.Absent {
		last := &r.Attempts[n-1]
		m.Upstream, m.Cache = last.Upstream, last.Cache.String()
		if last.Hint != nil && last.Hint.Waited >= 0 {
			m.Wait = seconds(last.Hint.Waited)
		}
		if last.Hint != nil && last.Hint.Fetched > 0 {
			t.Load = last.Hint.Fetched.Seconds()
		}
	}
	return t
}

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
	if a.Panic {
		why = append(why, " panic"...)
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
