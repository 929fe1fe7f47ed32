// Package trace holds the record of one job, and its reader and writer. It is
// the contract between the generator, which invents jobs, the sidecar, which writes
// a capture of those that it served, the simulator, which plays them, and the
// replayer, which sends them to real sidecars and writes a capture of what it measured.
//
// A trace is JSON Lines: one object for each job, times in seconds from the
// start of the trace. A generated trace tells what each job costs. A capture
// also tells what happened to it. What is not known is left out.
package trace

import "example.org/pilotfish/pkg/selection"

// Job is one job. A field that is zero is unknown, or nothing, and is left out
// of the file, except where its comment says otherwise.
type Job struct {
	// Offset is when the submitter sends the job, in seconds from the start of
	// the trace. Always written.
	Offset float64 `json:"offset"`
	// Project is whose data the job needs; "" is a job without affinity.
	Project Project `json:"project,omitzero"`
	// Priority is low when the file names none. Always written.
	Priority selection.Priority `json:"priority"`
	// Kind is process when the file names none. Always written.
	Kind Kind `json:"kind"`
	// Version is the generation of the project's data. An import raises it, and
	// makes useless what is cached of older ones.
	Version int64 `json:"version,omitzero"`
	// Shared names the shared rules. Jobs of one project, one version and
	// equal names share one SharedOperators joblet; "" has none.
	Shared string `json:"shared,omitzero"`
	// Channel is the export channel, from 1 within its project.
	Channel int64 `json:"channel,omitzero"`

	// Load, SharedRules, Operators and Output are the core-seconds of the
	// job's four joblets at an upstream (the thesis, 3.4): FeedSource, which
	// a cached project saves; SharedOperators; Operators; OutputFeed.
	Load        float64 `json:"load_s,omitzero"`
	SharedRules float64 `json:"shared_s,omitzero"`
	Operators   float64 `json:"operators_s,omitzero"`
	Output      float64 `json:"output_s,omitzero"`
	// Bytes is what the project's data takes in a cache.
	Bytes int64 `json:"bytes,omitzero"`

	Timeouts Timeouts `json:"timeouts,omitzero"`
	// Submitter is the number of the submitter that sends the job. Each has a
	// sidecar of its own.
	Submitter int64 `json:"submitter,omitzero"`
	// After is the line, counted from 1, of an earlier job that must end
	// before this one is sent; 0 is none, written as null.
	After Line `json:"after"`

	// Measured is what happened to the job; nil in a generated trace.
	Measured *Measured `json:",embed"`
}

// Work is the job's core-seconds when nothing of it is cached or shared; 0 when unknown.
func (j *Job) Work() float64 { return j.Load + j.SharedRules + j.Operators + j.Output }

// Timeouts are the bounds that a job sets itself, in seconds; 0 is not given.
type Timeouts struct {
	// Queue bounds the wait for a core, Evaluate the processing up to the
	// first byte of the answer, Stream the answer.
	Queue    float64 `json:"queue,omitzero"`
	Evaluate float64 `json:"evaluate,omitzero"`
	Stream   float64 `json:"stream,omitzero"`
}

// Measured is what was seen of a job from its arrival to its end. Times are in
// seconds; one that was not seen is nil.
type Measured struct {
	// Upstream is the address that gave the answer; "" when none did.
	Upstream string `json:"upstream,omitzero"`
	// Outcome is how the job ended, one word in the form of an attempt's outcome.
	Outcome string `json:"outcome,omitzero"`
	// Cache is what the sidecar took the project to be at Upstream when it
	// claimed it: cached, assumed or none.
	Cache string `json:"cache,omitzero"`
	// Queued is the time in the sidecar's queue, until the first attempt.
	Queued *float64 `json:"queue_s,omitzero"`
	// Wait is the time from reception at the upstream to the start of
	// execution, where the upstream tells it.
	Wait *float64 `json:"wait_s,omitzero"`
	// TTFB and TTLB are the times from the job's arrival to the first and to
	// the last byte of the answer.
	TTFB *float64 `json:"ttfb_s,omitzero"`
	TTLB *float64 `json:"ttlb_s,omitzero"`
	// Attempts are in the order of their start.
	Attempts []Attempt `json:"attempts,omitzero"`
}

// Attempt is one try at one upstream.
type Attempt struct {
	Upstream string `json:"upstream"`
	// Outcome is one word: lower-case letters and underscores.
	Outcome string `json:"outcome"`
	// Start and End are in seconds from the job's arrival.
	Start float64 `json:"start_s"`
	End   float64 `json:"end_s"`
}
