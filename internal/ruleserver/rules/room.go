package rules

import "fmt"

// TooLarge says that rules make a feed grow beyond what the server allows.
type TooLarge struct{ reason string }

func (t *TooLarge) Error() string { return "the rules make a feed of " + t.reason }

func tooLarge(format string, args ...any) error {
	return &TooLarge{reason: fmt.Sprintf(format, args...)}
}

// room is what is left of the bytes that a result may have. Rules that combine
// a field with itself double it each time: without a bound, a small job takes
// all memory.
type room struct{ limit, left int64 }

// has says whether n more bytes fit.
func (r *room) has(n int64) error {
	if n > r.left {
		return tooLarge("more than %d bytes", r.limit)
	}
	return nil
}

// take counts n more bytes, or fewer when n is negative.
func (r *room) take(n int64) error {
	r.left -= n
	return r.has(0)
}
