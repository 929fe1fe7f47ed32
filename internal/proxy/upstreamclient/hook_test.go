package upstreamclient

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/peer"
)

// The end of a context with a hook interrupts its current and later requests, but no request of another context on
// the same connection.
func TestTheEndOfAContextWithAHook(t *testing.T) {
	reached := make(chan struct{}, 1)
	up := peer.Listen(t, func(p *peer.Peer) {
		for r := p.Request(); r != nil; r = p.Request() {
			if r.Text == "wait" {
				reached <- struct{}{}
				p.Gone()
				return
			}
			p.Say(ok)
		}
	})
	c := newClient(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	hooked := WithHook(ctx)
	other, leave := context.WithCancel(t.Context())
	defer leave()
	for _, ctx := range []context.Context{other, hooked} {
		response, _, err := c.Do(WithHook(ctx), job(up, "{}"))
		require.NoError(t, err)
		_, err = response.all()
		require.NoError(t, err)
		leave() // the pooled connection no longer belongs to this context
	}
	go func() {
		<-reached
		cancel()
	}()
	_, p, err := c.Do(hooked, job(up, "wait"))
	require.ErrorIs(t, err, context.Canceled)
	assert.True(t, p.Reused)
	_, _, err = c.Do(hooked, job(up, "{}"))
	require.ErrorIs(t, err, context.Canceled)
	assert.False(t, onEnd(hooked, func() {})(), "it has ended before")
	assert.Zero(t, pooled(c, up))
}
