// Package intake holds what a sidecar reads out of a submitter's request: the
// facts that a policy and a deadline need, and the body, kept so that every
// attempt can send it from its beginning.
//
// Only the wanted members are read; the rest of a job is skipped, checked for
// its grammar but never parsed into values. All limits are constants of this package.
package intake

import (
	"math"
	"time"

	"example.org/pilotfish/pkg/selection"
)

const (
	// MaxProject bounds a project identifier, in bytes of its text.
	MaxProject = 256
	// MaxSession bounds a session identifier, in bytes of its text.
	MaxSession = 128
	// MaxTimeout bounds each timeout. It is the largest 32-bit number of
	// seconds, a usual way to say "no limit"; three of them still add up
	// within a time.Duration.
	MaxTimeout = math.MaxInt32 * time.Second
	// MaxDepth bounds the nesting of arrays and objects. It is jsontext's own,
	// and costs at most a few megabytes of stack.
	MaxDepth = 10_000
)

// Facts is what a job says of itself. Members that are absent, null or an
// empty string leave their zero value.
type Facts struct {
	// Project identifies the project whose data the job needs. The integer
	// 12345 and the string "12345" are the same project, with the same text;
	// "012345" is another.
	Project Text
	// Key is Key of the project: 0 is a job without affinity.
	Key      uint64
	Priority selection.Priority
	// Session names the submitter's session in the log; nothing depends on it.
	Session Text

	// Queue, Evaluate and Stream are the timeouts that the job sets for
	// waiting, for processing until the first byte, and for streaming. 0 is
	// not given; so is an explicit 0.
	Queue, Evaluate, Stream time.Duration
}
