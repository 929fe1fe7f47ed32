package pool

import (
	"time"

	"example.org/pilotfish/pkg/selection"
)

// Upstream is one rule processing server, as discovery describes it.
type Upstream struct {
	// Address is host:port, the upstream's identity.
	Address string `json:"address"`
	// Weight is its share of the load; 0 means 1.
	Weight float64 `json:"weight,omitempty"`
	// Cores is the number of joblets it runs at once; 0 is unknown.
	Cores int `json:"cores,omitempty"`
	// StartedAt is when it started; zero is unknown.
	StartedAt time.Time `json:"started_at,omitzero"`
	// StopsAt is when it will stop, such as the end of a pre-emptible machine; zero is unknown.
	StopsAt time.Time `json:"stops_at,omitzero"`
	// Draining upstreams get no new jobs, unless all upstreams stop or drain.
	Draining bool `json:"draining,omitempty"`
	// Heavy upstreams get only heavy jobs, unless all upstreams are heavy.
	Heavy bool `json:"heavy,omitempty"`
}

// Report is the state of an upstream at one instant, by its own report.
type Report struct {
	// At is the instant, on the sidecar's clock.
	At time.Time
	// Running and Stalled are the numbers of running jobs and of stalled joblets, by priority. ByPriority is set if the
	// upstream reports stalled joblets by priority; otherwise all count as low.
	Running    [selection.Priorities]float64
	Stalled    [selection.Priorities]float64
	ByPriority bool
	// Cores is the number of cores; 0 is not reported.
	Cores int
	// CoresBusy is the number of cores that run a joblet; negative is not reported.
	CoresBusy float64
	// Completed is the number of jobs completed since the upstream started; negative is not reported.
	Completed float64
	// Begun is the number of jobs whose wait ended since the upstream started; 0 is not reported.
	Begun float64
	// Read is the number of bytes of prompts that were not cached, counted when the upstream starts to read a prompt; 0
	// is not reported.
	Read float64
	// Failed is the number of Completed that failed for a reason of the upstream's own; negative is not reported.
	Failed float64
	// Wait is the mean wait of the jobs started since the last report, in seconds; NaN is unknown.
	Wait float64
	// Cached is the projects in its cache; nil is not reported.
	Cached CacheSet
}

func sum(byPriority [selection.Priorities]float64) float64 {
	return byPriority[selection.Low] + byPriority[selection.High]
}

// Hint is the load in the response to a job: a partial report, newer than the last poll.
type Hint struct {
	At time.Time
	// Running, Stalled and ByPriority are as in Report; a negative number is not reported.
	Running    [selection.Priorities]float64
	Stalled    [selection.Priorities]float64
	ByPriority bool
	// Utilization is the number of running and waiting jobs divided by the cores; negative is not reported. It is used if
	// Running or Stalled is not reported.
	Utilization float64
	// CoresBusy is as in Report; negative is not reported.
	CoresBusy float64
	// Cached is set if the project's data was cached; Known is set if the upstream reports that.
	Cached, Known bool
	// Waited and Fetched are the job's own wait and fetch time; negative is not reported. Fetched is for replayed traces:
	// the pool learns from the time to first byte.
	Waited  time.Duration
	Fetched time.Duration
}

// CacheSet is an immutable set of the projects in an upstream's cache.
type CacheSet interface {
	// Contains reports whether the project with this hash is in the set.
	Contains(project uint64) bool
	// Bytes is the size of the project's data; 0 is unknown.
	Bytes(project uint64) float64
	// Len is the number of projects.
	Len() int
}

// Outcome is how an attempt ended.
type Outcome uint8

// The outcomes of an attempt, a closed set.
const (
	// Answered: a complete response with a status below 500 was passed on.
	Answered Outcome = iota
	// Failed: a complete response with a status of 500 or more, whether it was passed on or retried.
	Failed
	// NotStarted: a 503 response says that the upstream did not start the job.
	NotStarted
	// Refused: there was no connection, or it ended before the whole job was sent.
	Refused
	// NoAnswer: the whole job was sent, and no byte of a response arrived.
	NoAnswer
	// TimedOut: no response began within the attempt's timeout.
	TimedOut
	// Truncated: the upstream broke off the response.
	Truncated
	// Gone: the submitter disconnected, or the job's own deadline passed while the response streamed.
	Gone
	// Moved: the job waited there and was withdrawn to go elsewhere.
	Moved

	// Outcomes is the number of outcomes.
	Outcomes = int(Moved) + 1
)

// String returns the outcome's name in metrics, logs and traces.
func (o Outcome) String() string {
	return [Outcomes]string{"answered", "failed", "not_started", "refused", "no_answer", "timed_out", "truncated", "gone", "moved"}[o]
}

// Waiter is a job that can be moved from the upstream where it waits.
type Waiter interface {
	// Tried returns the addresses that the job must not go to, including that upstream's.
	Tried() *Places
}
