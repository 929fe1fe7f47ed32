package replay

import (
	"fmt"
	"net/http"
	"time"

	"example.org/pilotfish/lab/trace"
)

// Result is how one job ended, as its submitter saw it. Times are in the trace's
// seconds. They count from when the job was due, so that a replay that falls behind
// does not look fast. A time that was not seen is negative.
type Result struct {
	// Line is the job's in the trace, and Job what the trace says.
	Line trace.Line
	Job  trace.Job
	// Late is how long after it was due the job was sent.
	Late float64
	// Wait is from reception at the upstream to the start of execution, where the
	// upstream tells it.
	Wait float64
	// FirstByte and LastByte are the times to the head and to the end of the response.
	FirstByte, LastByte float64
	// Upstream is the address that the sidecar named; "" if it named none.
	Upstream string
	// Fetched means that it caused a fetch of its project's data. It is false if the
	// upstream does not tell.
	Fetched bool
	// Status is the response's; 0 without one.
	Status int
	// Stopped means that the replay ended before the job did.
	Stopped bool
	// Err is why there was no response, or not all of it; nil if all came.
	Err error
}

// OK reports whether the job was done.
func (r *Result) OK() bool { return r.Err == nil && r.Status/100 == 2 }

// sighting is what was seen of a job, by this process's clock. A zero instant is
// never.
type sighting struct {
	due, sent, first, last time.Time

	status  int
	header  http.Header
	err     error
	stopped bool // the replay ended before the job did
}

// result is the sighting of a replay that was played speed times as fast as the trace.
func (s *sighting) result(speed float64) Result {
	since := func(at time.Time) float64 { return max(0, at.Sub(s.due).Seconds()) * speed }
	r := Result{
		Late: since(s.sent), Wait: -1, FirstByte: -1, LastByte: -1,
		Upstream: s.header.Get("Pilotfish-Upstream"), Stopped: s.stopped, Status: s.status, Err: s.err,
	}
	if !s.first.IsZero() {
		r.FirstByte = since(s.first)
	}
	if s.err == nil {
		r.LastByte = since(s.last)
	}
	return r
}

// ending is how the job ended, for a table.
func (r *Result) ending() string {
	switch {
	case r.Stopped:
		return "stopped with the replay"
	case r.Err != nil && r.Status != 0:
		return "cut"
	case r.Err != nil:
		return "no answer"
	case r.OK():
		return "answered"
	}
	return fmt.Sprintf("status %d", r.Status)
}
