package proxy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

// Where no upstream accepts a connection, a job tries them all again and again until its time in a queue is over.
func TestConnectTimeoutIsDoubled(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) { // a dial to an address without a listener times out
		c := startSidecar(t, setup{network: m, upstreams: []string{"up:1", "up:2", "up:3", "up:4"}, wait: 30 * time.Second})
		status, _, h, _ := m.submit(t, "{}")
		assert.Equal(t, 503, status)
		assert.Equal(t, "none-eligible", h.Get("Pilotfish-Reason"))
		r := c.seen(1)[0]
		require.Greater(t, len(r.Attempts), 4)
		for i, a := range r.Attempts[:4] {
			assert.Equal(t, pool.Refused, a.Outcome)
			assert.Equal(t, time.Second<<i, a.End-a.Start)
			if i > 0 {
				assert.Equal(t, r.Attempts[i-1].End, a.Start, "it goes elsewhere at once")
			}
		}
		assert.Equal(t, time.Second, r.Attempts[4].End-r.Attempts[4].Start, "the second round begins anew")
		assert.Less(t, r.Total, time.Minute)
	})
}

// A pause before the next round ends with the job's time.
func TestNoRoundAfterTheDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		require.NoError(t, m.Listen("up:1").Close())
		c := startSidecar(t, setup{network: m, upstreams: []string{"up:1"}})
		status, _, h, _ := m.submit(t, `{"timeouts":{"evaluate_seconds":1,"stream_seconds":1}}`)
		assert.Equal(t, 504, status)
		assert.Equal(t, "deadline", h.Get("Pilotfish-Reason"))
		r := c.seen(1)[0]
		assert.Equal(t, 2*time.Second, r.Total)
		require.Greater(t, len(r.Attempts), 2)
		assert.Less(t, r.Attempt().Start, 2*time.Second)
	})
}
