package lazyconn

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLimit(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		address := "127.0.0.1:0"
		if network == "unix" {
			address = t.TempDir() + "/s"
		}
		l, err := net.Listen(network, address)
		require.NoError(t, err)
		limit := NewLimit(2)
		limited := limit.Over(l)
		accepted := make(chan net.Conn)
		ended := make(chan error)
		go func() {
			for {
				c, err := limited.Accept()
				if err != nil {
					ended <- err
					return
				}
				accepted <- c
			}
		}()
		var first net.Conn
		open, _ := limit.Conns()
		assert.Zero(t, open, "none has come")
		for range 3 {
			c, err := net.Dial(network, l.Addr().String())
			require.NoError(t, err)
			defer c.Close()
		}
		for i := range 2 {
			c := <-accepted
			if i == 0 {
				first = c
			}
		}
		open, most := limit.Conns()
		assert.Equal(t, []int{2, 2}, []int{open, most}, "the third waits")
		_, isTCP := first.(interface{ SetLinger(seconds int) error })
		assert.Equal(t, network == "tcp", isTCP)
		assert.True(t, New(first, NewBuffers(16)).Lazy(), "it can wait without a buffer")
		require.NoError(t, first.Close())
		_ = first.Close() // frees one place, not two
		<-accepted
		require.NoError(t, limited.Close())
		assert.ErrorIs(t, <-ended, net.ErrClosed, "also while it waits for a place")
	}
}
