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

// Report is the state of an upstream at one instant, as it reports it.
type Report struct {
	// At is the instant, on the sidecar's clock.
	At time.Time
	// Running and Stalled are the numbers of running jobs and of stalled joblets, by priority. ByPriority is set if the
	// upstream reports stalled joblets by priority; otherwise all count as low.
	Running    [selection.Priorities]float64
	Stalled    [selection.Priorities]float64
	ByPriority bool
	// Cores is the number of cores; 0 if not reported.
	Cores int
	// CoresBusy is the number of cores that run a joblet; negative if not reported.
	CoresBusy float64
	// Completed is the number of jobs completed since the upstream started; negative if not reported.
	Completed float64
	// Begun is the number of jobs that began to run since the upstream started; 0 if not reported.
	Begun float64
	// Read is the number of uncached bytes of prompts since the upstream started. A prompt's bytes are added when the
	// upstream starts to read it. 0 if not reported.
	Read float64
	// Failed is how many of the completed jobs failed through the upstream's own fault; negative if not reported.
	Failed float64
	// Wait is the mean wait of the jobs started since the last report, in seconds; NaN is unknown.
	Wait float64
	// Cached lists the projects in its cache; nil if not reported.
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
	// Utilization is the number of running and waiting jobs divided by the cores; negative if not reported. It is used
	// if Running or Stalled is missing.
	Utilization float64
	// CoresBusy is as in Report; negative if not reported.
	CoresBusy float64
	// Cached is set if the project's data was cached; Known is set if the upstream reports that.
	Cached, Known bool
	// Waited and Fetched are the job's own wait and fetch time; negative if not reported. Fetched is only recorded, for
	// replayed traces: the pool learns fetch times from the time to first byte.
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

// Waiter is a job that can be moved from the upstream where it waits.
type Waiter interface {
	// Tried returns the addresses of the upstreams that the job must not go to, including the one where it waits.
	Tried() *AddressSet
}
