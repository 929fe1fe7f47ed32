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
	Project Text
	// Key is the function Key of the project; 0 is a job without affinity.
	Key      uint64
	Priority selection.Priority
	// Session names the submitter's session in the log; nothing depends on it.
	Session Text

	// Bytes is the size of the project's data; 0 is not given.
	Bytes float64

	// Queue, Evaluate and Stream are the timeouts that the job sets for waiting,
	// for processing until the first byte, and for streaming. 0 is not given,
	// even if the job says 0.
	Queue, Evaluate, Stream time.Duration
}

// Key returns the hash by which policies know a project. All sidecars have the
// same. It is 0 only for "".
func Key(project string) uint64 { return hash.Project(project) }

// inline is how many bytes a Text holds in place: enough for a UUID, and for any
// integer of 64 bits.
const inline = 39

// Text is a short string that usually needs no allocation: integers and UUIDs
// are held in place. Two Texts are equal under == if, and only if, their strings
// are equal.
type Text struct {
	long  string // set only when the text does not fit in place
	n     uint8
	short [inline]byte
}

// NewText returns the text of s.
func NewText(s string) Text { return makeText(s) }

func makeText[T string | []byte](s T) Text {
	var t Text
	if len(s) > inline {
		t.long = string(s)
		return t
	}
	t.n = uint8(copy(t.short[:], s))
	return t
}

// String returns the text. It allocates a copy of a short one.
func (t Text) String() string {
	if t.long != "" {
		return t.long
	}
	return string(t.short[:t.n])
}

// Append appends the text.
func (t *Text) Append(b []byte) []byte {
	if t.long != "" {
		return append(b, t.long...)
	}
	return append(b, t.short[:t.n]...)
}

// MarshalText makes encoders write a Text as the string it stands for.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
