package lazyconn

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is a connection and its other end.
func pair(t *testing.T) (here *Conn, there net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	there, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	nc, err := l.Accept()
	require.NoError(t, err)
	here = New(nc, NewBuffers(16))
	t.Cleanup(func() {
		_ = here.Close()
		_ = there.Close()
	})
	return here, there
}

// What a submitter sends is no end, and is not lost; nor is a read deadline an end.
func TestWaitForEndLeavesWhatIsSent(t *testing.T) {
	here, there := pair(t)
	for range 3 {
		_, err := io.WriteString(there, "next")
		require.NoError(t, err)
		assert.False(t, here.WaitForEnd())
		p := make([]byte, 4)
		_, err = io.ReadFull(here, p)
		require.NoError(t, err)
		assert.Equal(t, "next", string(p))
	}
	require.NoError(t, here.SetReadDeadline(time.Unix(1, 0)))
	assert.False(t, here.WaitForEnd())
}
