package upstreamclient

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The connections that have been idle for longest are closed first, and the pool keeps no more than its maximum. A
// connection that a request is about to take stays.
func TestASweepClosesTheOldest(t *testing.T) {
	c := newClient(t, Config{Idle: 3})
	var all []*conn
	for range 4 {
		near, _ := net.Pipe()
		all = append(all, newConn(near, 0))
		c.keep("up:1", all[len(all)-1])
	}
	open := func(i int) bool { return all[i].SetDeadline(time.Time{}) == nil }
	assert.False(t, open(3), "one too many")
	u := c.upstreams["up:1"]
	for range maxSweeps {
		c.sweep()
	}
	require.Len(t, u.idle, 3)
	<-u.there // a request has seen it, and takes it next
	all[2].sweeps = 0
	c.sweep()
	assert.False(t, open(0))
	assert.False(t, open(1))
	assert.Same(t, all[2], u.take())
	assert.True(t, open(2))
	c.sweep()
	assert.Empty(t, c.upstreams, "it is forgotten")
	c.Close()
	c.keep("up:1", all[2])
	assert.False(t, open(2))
}
