package quality

import (
	"fmt"
	"slices"
)

// Mode is how submitters are served (N. J. Turner's thesis, 4.5).
type Mode uint8

// The modes, a closed set. Their numbers are those of the thesis.
const (
	// Unknown: too few jobs ended to tell.
	Unknown Mode = iota
	// Flat: each job is served like the one before.
	Flat
	// Growing: jobs are complete, and each waits longer for its first byte than the
	// one before: more work comes than is done.
	Growing
	// Losing: submitters get errors, or their results in part or not at all.
	Losing
)

var modeWords = []string{"unknown", "flat", "growing", "losing"}

// String returns the mode's word.
func (m Mode) String() string { return modeWords[m] }

// MarshalText is String.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText takes the mode's word.
func (m *Mode) UnmarshalText(text []byte) error {
	i := slices.Index(modeWords, string(text))
	if i < 0 {
		return fmt.Errorf("%.20q is no mode", text)
	}
	*m = Mode(i)
	return nil
}
