package replay

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/pkg/trace"
)

// Result is how one job ended, as its submitter saw it.
type Result struct {
	// Line is the job's in the trace, counted from 1.
	Line trace.Line
	// Job is the trace's, with Measured filled in, in the trace's seconds. Its
	// times count from when the job was due, so that a replay that falls behind does
	// not look fast. Its one attempt, at the target, starts when the job was sent.
	Job trace.Job
	// Status is the response's; 0 without one.
	Status int
	// Fetched means that it caused a fetch of its project's data. It is false if the
	// upstream does not tell.
	Fetched bool
	// Err is why there was no response, or not all of it; nil if all came.
	Err error
}

// Late is how long after it was due the job was sent, in the trace's seconds.
func (r *Result) Late() float64 { return r.Job.Measured.Attempts[0].Start }

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

// outcome names the job's end in the words of the sidecar's records.
func (s *sighting) outcome() intake.Outcome {
	own := s.header.Get("Pilotfish-Reason") != ""
	switch {
	case s.stopped:
		return intake.Gone
	case s.err != nil && s.status != 0:
		return intake.Truncated
	case s.err != nil:
		return intake.NoAnswer
	case own && (s.status == http.StatusServiceUnavailable || s.status == http.StatusTooManyRequests):
		return intake.Shed
	case own && s.status == http.StatusGatewayTimeout:
		return intake.Deadline
	case own && s.status == http.StatusBadGateway:
		return intake.NoAnswer
	case own:
		return intake.Rejected
	case s.status >= http.StatusInternalServerError:
		return intake.Failed
	}
	return intake.Answered
}

// cacheWord is the sidecar's word for what it believed about the upstream's cache;
// "" if it is no such word.
func cacheWord(word string) string {
	if slices.Contains([]string{"cached", "assumed", "none"}, word) {
		return word
	}
	return ""
}

// measure turns a sighting into what a capture says about a job, in the trace's
// seconds: the trace was played speed times as fast.
func (s *sighting) measure(target string, speed float64) *trace.Measured {
	since := func(at time.Time) float64 { return max(0, at.Sub(s.due).Seconds()) * speed }
	m := &trace.Measured{
		Upstream: s.header.Get("Pilotfish-Upstream"),
		Outcome:  s.outcome().String(),
		Cache:    cacheWord(s.header.Get("Pilotfish-Cache")),
		Attempts: []trace.Attempt{{Upstream: strings.TrimPrefix(target, "http://"), Outcome: s.outcome().String(), Start: since(s.sent), End: since(s.last)}},
	}
	if !s.first.IsZero() {
		ttfb, ttlb := since(s.first), since(s.last)
		m.TTFB = &ttfb
		if s.err == nil {
			m.TTLB = &ttlb
		}
	}
	return m
}
