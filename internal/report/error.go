package report

import (
	"fmt"
	"strings"
)

// Part is one of the two answers of a poll.
type Part string

// The parts of a poll.
const (
	Metrics      Part = "metrics"
	CacheListing Part = "cache listing"
)

// maxReason bounds what an error repeats of an answer, in bytes.
const maxReason = 300

// Error is a poll that failed, or half of one.
type Error struct {
	Address string
	// Part is Metrics when the poll gave no report, CacheListing when it gave
	// one that leaves the cached projects open.
	Part Part
	Err  error
}

func (e *Error) Error() string {
	reason := e.Err.Error()
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	return fmt.Sprintf("upstream %s: %s: %s", e.Address, e.Part, reason)
}

// Unwrap returns what went wrong.
func (e *Error) Unwrap() error { return e.Err }
