// Package trace has the record of one job, and reads jobs from files: access logs, and the
// traces of prompts that Mooncake published. Package workload generates such jobs, package sim
// simulates them, and package replay sends them to real sidecars.
package trace

import (
	"time"

	"example.org/pilotfish/pkg/selection"
)

// MaxSeconds bounds every time and every cost: some 31 years, so that sums of them fit into a time.Duration.
const MaxSeconds = 1e9

// Duration converts seconds.
func Duration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Job is one job. The zero value of a field means unknown or none. Times are in seconds.
type Job struct {
	// Offset is when the submitter sends the job, counted from the first job.
	Offset float64
	// Project identifies the data that the job needs; "" is a job without a project.
	Project  Project
	Priority selection.Priority
	// Channel is the number of the project's export channel that the job is for; 0 is none. Jobs of one channel take
	// about as long.
	Channel int64
	// Prefetch is set for a job that only loads the project's data into the cache (the thesis, 3.2): its only cost is Load.
	Prefetch bool
	// Version is the version of the project's data. An import increments it, which makes cached data of older versions useless.
	Version int64
	// Shared names the shared rules. Jobs of the same project, version and name share that joblet; "" is none.
	Shared string

	// Load, SharedRules, Operators and Output are the core-seconds of the job's four joblets at an upstream (the
	// thesis, 3.4): FeedSource, which a cached project saves; SharedOperators; Operators; OutputFeed.
	Load, SharedRules, Operators, Output float64
	// Bytes is the size of the project's data in a cache.
	Bytes int64

	// Needs lists the data that the job needs besides the project's.
	Needs []Need
	// Read and Write are the numbers of tokens of a prompt to a language model and of its response. Blocks
	// identifies the prompt's blocks of BlockTokens tokens; the last block can be shorter. Prompts that have an
	// identifier in common are equal up to the end of that block.
	Read, Write int64
	Blocks      []int64

	Timeouts Timeouts
	// Submitter is the number of the submitter that sends the job. Each submitter has its own sidecar.
	Submitter int64
	// After is the line of an earlier job that must end before this one is sent; 0 is none.
	After Line
}

// Need is data besides a project's, which several jobs can need.
type Need struct {
	Name Project
	// Load is the core-seconds of a fetch, Bytes the size in a cache.
	Load  float64
	Bytes int64
}

// Work returns the job's core-seconds if nothing is cached or shared; 0 if unknown.
func (j *Job) Work() float64 { return j.Load + j.SharedRules + j.Operators + j.Output }

// Timeouts are a job's own timeouts in seconds; 0 is none.
type Timeouts struct {
	// Queue bounds the wait for a core, Evaluate the time from there to the first byte of the response, Stream the
	// time from there to the end.
	Queue, Evaluate, Stream float64
}

// Line is the number of a job in its trace, counted from 1.
type Line int64

// Project is a project's identifier as text. The integer 12345 and the string "12345" are the same project.
type Project string
