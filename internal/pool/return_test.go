package pool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An upstream that left and comes back with jobs still open there gets the
// gate that is kept for its address now: the one that others look at.
func TestAnUpstreamThatReturnsHasTheGateOfItsAddress(t *testing.T) {
	f := newFixture(t, "least-in-flight", 1)
	first := f.set[0].Address
	l, err := f.Claim(start, Request{}, nil)
	require.NoError(t, err)
	f.Set(start, nil)
	delete(f.gates, first) // as the breakers forget those that left
	f.Set(start.Add(time.Second), []Upstream{{Address: first}})
	require.Equal(t, 1, f.InFlight(), "its job is counted still")
	require.Contains(t, f.gates, first)
	f.gates[first].shut = true
	assert.False(t, f.States(start)[0].Eligible)
	f.gates[first].shut = false
	l.Done(start.Add(time.Second), Answered)
	assert.Zero(t, f.InFlight())
}
