// Package trace holds the record of one job, and its reader and writer: the
// one contract between the sidecar that captures jobs, the generator that
// invents them, the replayer and the simulator that run them, and the
// statistics over all of these.
//
// A trace is JSON Lines: one object for each job, times in seconds from the
// start of the trace. A generated trace tells what each job costs; a capture
// tells what happened to it; what is not known is left out.
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
	// Version is the generation of the project's data: an import raises it,
	// and what is cached of an older one is of no use.
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
	// Submitter tells which of the submitters, and so which sidecar, sees the job.
	Submitter int64 `json:"submitter,omitzero"`
	// After is the line, counted from 1, of an earlier job that must end
	// before this one is sent; 0 is none, written as null.
	After Line `json:"after"`

	// Measured is what a sidecar saw of the job; nil in a generated trace.
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
