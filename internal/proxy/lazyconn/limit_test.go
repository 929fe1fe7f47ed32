package lazyconn

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLimit(t *testing.T) {
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": t.TempDir() + "/s"} {
		l, err := net.Listen(network, address)
		require.NoError(t, err)
		limit := NewLimit(2)
		limited := limit.Over(l)
		for range 4 {
			c, err := net.Dial(network, l.Addr().String())
			require.NoError(t, err)
			defer c.Close()
		}
		first, err := limited.Accept()
		require.NoError(t, err)
		_, err = limited.Accept()
		require.NoError(t, err)
		_, isTCP := first.(interface{ SetLinger(seconds int) error })
		assert.Equal(t, network == "tcp", isTCP)
		assert.True(t, New(first, NewBuffers(16)).Lazy(), "it can wait without a buffer")

		accepted := make(chan error)
		go func() {
			for range 2 {
				_, err := limited.Accept()
				accepted <- err
			}
		}()
		require.NoError(t, first.Close())
		_ = first.Close() // frees one place, not two
		require.NoError(t, <-accepted)
		open, most := limit.Conns()
		assert.Equal(t, []int{2, 2}, []int{open, most}, "the fourth waits")
		require.NoError(t, limited.Close())
		assert.ErrorIs(t, <-accepted, net.ErrClosed, "also while it waits for a place")
	}
}
