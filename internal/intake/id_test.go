package intake

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestID(t *testing.T) {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	const parent = "00-" + trace + "-00f067aa0ba902b7-01"
	for _, c := range []struct{ requestID, traceparent, want string }{
		{"", "", ""},
		{"job-1", "", "job-1"},
		{"job-1", parent, "job-1"},
		{"", parent, trace},
		{"", "01-" + trace + "-00f067aa0ba902b7-01-more", trace}, // of a later version
		{"has space", parent, trace},
		{"line\nbreak", "", ""},
		{"é", "", ""},
		{strings.Repeat("x", maxID), "", strings.Repeat("x", maxID)},
		{strings.Repeat("x", maxID+1), parent, trace},
		{"", "00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01", ""},
		{"", "00-" + strings.ToUpper(trace) + "-00f067aa0ba902b7-01", ""},
		{"", "00-" + strings.Repeat("g", 32) + "-00f067aa0ba902b7-01", ""},
		{"", "ff-" + trace + "-00f067aa0ba902b7-01", ""},
		{"", "00-" + trace, ""},
		{"", "00-" + trace[1:] + "-00f067aa0ba902b7-01", ""},
	} {
		got := ID(c.requestID, c.traceparent)
		if c.want == "" {
			assert.Regexp(t, "^[A-Z2-7]{26}$", got, "%q %q: a new one", c.requestID, c.traceparent)
			assert.NotEqual(t, got, ID(c.requestID, c.traceparent))
			continue
		}
		assert.Equal(t, c.want, got, "%q %q", c.requestID, c.traceparent)
	}
}
