package stats

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNumbersForPeople(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1_234_567: "1,234,567"} {
		assert.Equal(t, want, Thousands(n))
	}
	for seconds, want := range map[float64]string{0: "0s", 59.6: "1m", 61: "1m1s", 3600: "1h", 3660: "1h1m", 86_401: "24h0m1s"} {
		assert.Equal(t, want, Span(seconds))
	}
}
