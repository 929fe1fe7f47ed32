package lazyconn

import (
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is a connection and its other end.
func pair(t *testing.T, network, address string) (here *Conn, there net.Conn) {
	t.Helper()
	l, err := net.Listen(network, address)
	require.NoError(t, err)
	defer l.Close()
	there, err = net.Dial(network, l.Addr().String())
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

// WaitForEnd tells every way in which a connection can end, also when it ended before.
func TestWaitForEnd(t *testing.T) {
	for name, leave := range map[string]func(net.Conn) error{
		"closed": func(c net.Conn) error { return c.Close() },
		"half-closed": func(c net.Conn) error {
			return c.(interface{ CloseWrite() error }).CloseWrite()
		},
		"reset": func(c net.Conn) error {
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			return c.Close()
		},
	} {
		for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "socket")} {
			t.Run(name+" "+network, func(t *testing.T) {
				here, there := pair(t, network, address)
				ended := make(chan bool)
				go func() { ended <- here.WaitForEnd() }()
				require.NoError(t, leave(there))
				assert.True(t, <-ended)
				assert.True(t, here.WaitForEnd())
			})
		}
	}
}

// What a submitter sends is no end, and is not lost; nor is a read deadline an end.
func TestWaitForEndLeavesWhatIsSent(t *testing.T) {
	here, there := pair(t, "tcp", "127.0.0.1:0")
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
