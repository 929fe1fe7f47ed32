// Package intake holds what a sidecar reads out of a submitter's request: the
// facts that a policy and a deadline need, and the body, which is kept so that
// every attempt can send it from its beginning. It also holds the words for how
// a job ends.
//
// Only the wanted members are read. The rest of a job is skipped: its grammar is
// checked, but no value is parsed.
package intake

import (
	"math"
	"time"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/pkg/selection"
)

const (
	// MaxProject bounds a project identifier, in bytes of its text.
	MaxProject = 256
	// maxSession bounds a session identifier, in bytes of its text.
	maxSession = 128
	// MaxTimeout bounds each timeout. It is the largest 32-bit number of seconds,
	// which often stands for "no limit". Three of them fit into a time.Duration.
	MaxTimeout = math.MaxInt32 * time.Second
)

// Facts is what a job says of itself. Members that are absent, null or an
// empty string leave their zero value.
type Facts struct {
	// Project identifies the project whose data the job needs. The integer
	// 12345 and the string "12345" are the same project, with the same text;
	// "012345" is another.
	Project string
	// Key is the function Key of the project; 0 is a job without affinity.
	Key      uint64
	Priority selection.Priority
	// Prefetch is set for a request that only loads the project's data.
	Prefetch bool
	// Session names the submitter's session in the log; nothing depends on it.
	Session string

	// Data is the parts of the project's data; nil is one. Bytes is its size then, 0 where that is not
	// given.
	Data  *Parts
	Bytes float64

	// Queue, Evaluate and Stream are the timeouts that the job sets for waiting,
	// for processing until the first byte, and for streaming. 0 is not given,
	// even if the job says 0.
	Queue, Evaluate, Stream time.Duration
}

// Key returns the hash by which policies know a project. All sidecars have the
// same. It is 0 only for "".
func Key(project string) uint64 { return hash.Project(project) }
