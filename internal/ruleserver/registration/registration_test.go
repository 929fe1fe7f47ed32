package registration

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cmd/ruleserver tests a registration against an agent.

// A server that listens everywhere goes by its node's address.
func TestAddress(t *testing.T) {
	for address, want := range map[string][3]string{
		"10.0.0.1:9001": {"10.0.0.1", "rules-10.0.0.1:9001", "http://10.0.0.1:9001/healthz"},
		":9001":         {"", "rules-127.0.0.1:9001", "http://127.0.0.1:9001/healthz"},
		"0.0.0.0:9001":  {"", "rules-127.0.0.1:9001", "http://127.0.0.1:9001/healthz"},
		"[::]:9001":     {"", "rules-127.0.0.1:9001", "http://127.0.0.1:9001/healthz"},
	} {
		r, err := New("consul.test:8500", Server{Service: "rules", Address: address}, nil)
		require.NoError(t, err)
		assert.Equal(t, want, [3]string{r.wanted.Address, r.wanted.ID, r.wanted.Check.HTTP}, address)
		assert.Equal(t, 9001, r.wanted.Port)
	}
}

// down is an agent that cannot be reached.
type down struct{}

func (down) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// TestFailures: what failed is named, and what was wanted stands until it succeeds.
func TestFailures(t *testing.T) {
	r, err := New("consul.test:8500", Server{Service: "rules", Address: "10.0.0.1:9001"}, down{})
	require.NoError(t, err)
	assert.ErrorContains(t, r.Drain(t.Context()), "look for rules-10.0.0.1:9001 at consul: ")
	assert.Equal(t, "true", r.wanted.Meta["draining"])
	assert.ErrorContains(t, r.Leave(t.Context()), "deregister rules-10.0.0.1:9001 at consul: ")
}
