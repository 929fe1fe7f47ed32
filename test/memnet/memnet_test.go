package memnet

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDial(t *testing.T) {
	var n Network
	l := n.Listen("a:1")
	assert.Equal(t, "a:1", l.Addr().String())
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, _ = c.Write([]byte("hello"))
			_ = c.Close()
		}
	}()
	c, err := n.Dial(t.Context(), "tcp", "a:1")
	require.NoError(t, err)
	text, err := io.ReadAll(c)
	require.NoError(t, err)
	assert.Equal(t, "hello", string(text))

	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	_, err = l.Accept()
	assert.ErrorIs(t, err, net.ErrClosed)
	_, err = n.Dial(t.Context(), "tcp", "a:1")
	assert.EqualError(t, err, "dial a:1: connection refused")
}

// Where nobody listens, or nobody accepts, a dial waits until its time is over.
func TestDialWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n Network
		n.Listen("busy:1")
		for _, address := range []string{"absent:1", "busy:1"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			begun := time.Now()
			_, err := n.Dial(ctx, "tcp", address)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, time.Minute, time.Since(begun))
		}
	})
}
