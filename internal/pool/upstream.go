package pool

import (
	"time"

	"example.org/pilotfish/pkg/selection"
)

// Upstream is what discovery says of one rule processing server.
type Upstream struct {
	// Address is host:port, the upstream's identity.
	Address string `json:"address"`
	// Weight is its share of the load; 0 means 1.
	Weight float64 `json:"weight,omitempty"`
	// Cores is how many joblets it runs at once; 0 is unknown until a report tells.
	Cores int `json:"cores,omitempty"`
	// StartedAt is when it came up; zero is unknown.
	StartedAt time.Time `json:"started_at,omitzero"`
	// StopsAt is when it will stop, if that is known: the end of a
	// pre-emptible upstream's life. Zero is unknown.
	StopsAt time.Time `json:"stops_at,omitzero"`
	// Draining upstreams get no new jobs unless all drain.
	Draining bool `json:"draining,omitempty"`
	// Heavy upstreams get heavy jobs alone, unless all upstreams are so.
	Heavy bool `json:"heavy,omitempty"`
}

// Report is what an upstream says of itself at one instant.
type Report struct {
	// At is when the upstream was in this state, on the sidecar's clock.
	At time.Time
	// Running and Stalled count jobs in progress and stalled joblets, by priority.
	// ByPriority is set if the upstream tells stalled joblets of high and low priority apart; otherwise all count as low.
	Running    [selection.Priorities]float64
	Stalled    [selection.Priorities]float64
	ByPriority bool
	// Cores is 0 when it does not say.
	Cores int
	// CoresBusy is how many of them run a joblet; negative when it does not say.
	CoresBusy float64
	// Completed counts the jobs finished since the upstream started; negative
	// when it does not say.
	Completed float64
	// Begun counts the jobs whose wait ended since the upstream started; 0 when it does not say.
	Begun float64
	// Read counts the bytes of prompts that were not cached, each prompt's when the upstream starts to read it; 0 when it
	// does not say.
	Read float64
	// Failed counts those of them that failed for a reason of the upstream's own;
	// negative when it does not say.
	Failed float64
	// Wait is the mean wait of the jobs started since the report before, in seconds; NaN
	// when unknown.
	Wait float64
	// Cached is the projects in its cache; nil leaves what was known before.
	Cached CacheSet
}

func sum(byPriority [selection.Priorities]float64) float64 {
	return byPriority[selection.Low] + byPriority[selection.High]
}

// Hint is the load that an upstream tells on the response to a job: a partial
// report, fresher than the last poll.
type Hint struct {
	At time.Time
	// Running, Stalled and ByPriority are as in Report; a negative number is not reported.
	Running    [selection.Priorities]float64
	Stalled    [selection.Priorities]float64
	ByPriority bool
	// Utilization is how many jobs run or wait, over the cores; negative is not
	// told. It counts where Running or Stalled is not told.
	Utilization float64
	// CoresBusy is as in Report; negative is not reported.
	CoresBusy float64
	// Cached says whether the job found its project's data there; Known is
	// false when the upstream did not say.
	Cached, Known bool
	// Waited and Fetched are the job's own wait and fetch time; negative when
	// not told. Fetched is for those who replay traces: the pool learns from when responses begin.
	Waited  time.Duration
	Fetched time.Duration
}

// CacheSet is an immutable set of the projects that an upstream holds. The pool remembers
// what it says of a project.
type CacheSet interface {
	// Contains reports whether the project with this hash is in the set.
	Contains(project uint64) bool
	// Bytes is the size of the project's data there; 0 where it is not told.
	Bytes(project uint64) float64
	// Len is how many projects are in it.
	Len() int
}

// Outcome is how an attempt ended.
type Outcome uint8

// The outcomes of an attempt, a closed set.
const (
	// Answered: the response was passed on to its end, whatever its status below 500.
	Answered Outcome = iota
	// Failed: a complete response with a status of 500 or more.
	Failed
	// NotStarted: a 503 that says that nothing was done for the job.
	NotStarted
	// Refused: no connection, or it ended before the job was sent in full.
	Refused
	// NoAnswer: the job was sent in full but no byte of a response came.
	NoAnswer
	// TimedOut: no response began within the attempt's time.
	TimedOut
	// Truncated: the response began and was cut short by the upstream.
	Truncated
	// Gone: the submitter went away, or the job's own deadline passed while the response streamed.
	Gone
	// Moved: the job waited there and was withdrawn, to go elsewhere.
	Moved

	// Outcomes is how many there are.
	Outcomes = int(Moved) + 1
)

// String returns the outcome's word in metrics, logs and traces.
func (o Outcome) String() string {
	return [Outcomes]string{"answered", "failed", "not_started", "refused", "no_answer", "timed_out", "truncated", "gone", "moved"}[o]
}

// Waiter is a job that may leave an upstream at which it waits.
type Waiter interface {
	// Tried are the addresses that it may not go to, that of the upstream among them.
	Tried() *Places
}
