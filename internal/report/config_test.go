package report

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConstructorsRefuseWhatIsMissing(t *testing.T) {
	const listing, required = "report: Listing is required with Prometheus", "report: Rand, Report and Failed are required"
	for _, c := range []struct {
		change             func(*Config)
		poller, prometheus string
	}{
		{func(c *Config) { *c = Config{} }, required, listing},
		{func(c *Config) { c.Rand = nil }, required, required},
		{func(c *Config) { c.Report = nil }, required, required},
		{func(c *Config) { c.Failed = nil }, required, required},
		{func(c *Config) { c.Listing = nil }, "", listing},
		{func(c *Config) { c.Timeout = 0 }, "report: timeout: 0s must be positive", "report: timeout: 0s must be positive"},
		{func(c *Config) {}, "", ""},
	} {
		cfg := testConfig()
		c.change(&cfg)
		_, err := NewPoller(cfg)
		requireError(t, c.poller, err)
		_, err = NewPrometheus(cfg)
		requireError(t, c.prometheus, err)
	}
}

// requireError requires an error of that text; "" is none.
func requireError(t *testing.T, want string, err error) {
	t.Helper()
	if want == "" {
		require.NoError(t, err)
		return
	}
	require.EqualError(t, err, want)
}

func TestErrorSaysWhichPartAndNotTooMuch(t *testing.T) {
	s := newSubject(t, upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "a "+strings.Repeat("é", 1<<16)+"\n")
	}, nil))
	_, err := s.once(t)
	var failure *pollError
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, metricsPart, failure.part)
	assert.Equal(t, s.address, failure.address)
	assert.Less(t, len(failure.Error()), 400)
	assert.Equal(t, strings.ToValidUTF8(failure.Error(), ""), failure.Error())

	s = newSubject(t, upstream(t, nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	_, err = s.once(t)
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, cachePart, failure.part)
	assert.ErrorIs(t, err, statusError(http.StatusTeapot))
}
