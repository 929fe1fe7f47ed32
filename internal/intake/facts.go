// Package intake reads a submitter's request. It extracts the facts that routing and
// deadlines need, such as project and priority, and keeps the body so that every
// attempt can send it from its start. It also defines the outcomes of a job.
//
// Only the configured members are parsed. The syntax of the other members is
// checked, but their values are skipped.
package intake

import (
	"math"
	"time"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/pkg/selection"
)

const (
	// MaxProject is the maximum length of a project identifier, in bytes.
	MaxProject = 256
	// maxSession is the maximum length of a session identifier, in bytes.
	maxSession = 128
	// MaxTimeout is the maximum of each timeout. Clients often send the largest 32-bit
	// number of seconds to mean "no limit". The sum of three fits into a time.Duration.
	MaxTimeout = math.MaxInt32 * time.Second
)

// Facts are the members of a job that the sidecar uses. Members that are absent, null
// or an empty string have their zero value.
type Facts struct {
	// Project identifies the project whose data the job needs. The integer
	// 12345 and the string "12345" are the same project, with the same text;
	// "012345" is another.
	Project string
	// Key is the hash of the project (see the function Key); 0 if the job has no project.
	Key      uint64
	Priority selection.Priority
	// LengthKey is the hash of the job's values of job.length_key; 0 if it has none.
	LengthKey uint64
	// Prefetch is set for a request that only loads the project's data.
	Prefetch bool
	// Session is the submitter's session identifier. It is only logged.
	Session string

	// Data lists the parts of the project's data; nil means one part, of Bytes bytes. Bytes is 0 if the job
	// does not give the size.
	Data  *Parts
	Bytes float64

	// Queue, Evaluate and Stream are the job's timeouts: in queues, from there to the
	// first byte of the response, and from the first byte to the last. 0 means not
	// given; a 0 in the job means the same.
	Queue, Evaluate, Stream time.Duration
}

// Key returns the hash that identifies a project in policies. All sidecars compute the
// same hash. It is 0 only for "".
func Key(project string) uint64 { return hash.Project(project) }

// LengthKey returns the length key of a job with these values at the first places of job.length_key. "" is an absent value.
func LengthKey(values []string) uint64 {
	var parts [MaxPlaces]uint64
	for i, value := range values[:min(len(values), MaxPlaces)] {
		if value != "" {
			parts[i] = lengthPart([]byte(value))
		}
	}
	return joinLengths(parts)
}

func lengthPart(value []byte) uint64 { return hash.Block(0, value) }

// joinLengths combines the hashes of the values at all places; 0 is an absent value. It is 0 only if all are.
func joinLengths(parts [MaxPlaces]uint64) (key uint64) {
	if parts == [MaxPlaces]uint64{} {
		return 0
	}
	for _, part := range parts {
		key = hash.Pair(key, part)
	}
	return key
}
