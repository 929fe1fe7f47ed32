package lazyconn

import (
	"io"
	"net"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests; nothing is measured by it.
const patience = 20 * time.Second

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

func newWatcher(t *testing.T) *Watcher {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("there is no watcher")
	}
	w := new(Watcher)
	t.Cleanup(w.Close)
	return w
}

// watch watches c, and returns a channel that gets something when c has ended.
func watch(t *testing.T, w *Watcher, c *Conn) <-chan struct{} {
	t.Helper()
	ended := make(chan struct{}, 2)
	require.True(t, w.Watch(c, func() { ended <- struct{}{} }))
	return ended
}

func heard(t *testing.T, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("nothing was heard of the end")
	}
}

// The watcher tells of every way in which a connection can end, once, also when it ended before.
func TestTheWatcherHearsOfEnds(t *testing.T) {
	w := newWatcher(t)
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
				ended := watch(t, w, here)
				assert.Empty(t, ended)
				require.NoError(t, leave(there))
				heard(t, ended)
				w.Forget(here)
				heard(t, watch(t, w, here))
				w.Forget(here)
				assert.Empty(t, ended)
			})
		}
	}
}

// What a submitter sends is no end, and is not lost. What comes after Forget is not told.
func TestTheWatcherLeavesWhatIsSent(t *testing.T) {
	w := newWatcher(t)
	here, there := pair(t, "tcp", "127.0.0.1:0")
	other, leaving := pair(t, "tcp", "127.0.0.1:0")
	for range 3 {
		ended := watch(t, w, here)
		_, err := io.WriteString(there, "next")
		require.NoError(t, err)
		seen := watch(t, w, other) // it is heard of after the bytes
		_ = leaving.Close()
		heard(t, seen)
		w.Forget(other)
		w.Forget(here)
		assert.Empty(t, ended)
		p := make([]byte, 4)
		_, err = io.ReadFull(here, p)
		require.NoError(t, err)
		assert.Equal(t, "next", string(p))
	}
	ended := watch(t, w, here)
	w.Forget(here)
	w.Forget(here)
	require.NoError(t, there.Close())
	heard(t, watch(t, w, other))
	assert.Empty(t, ended)
}

// A connection that was closed here may still be forgotten, though another one has its descriptor.
func TestTheWatcherKnowsConnectionsApart(t *testing.T) {
	w := newWatcher(t)
	same := 0
	for range 20 {
		first, _ := pair(t, "tcp", "127.0.0.1:0")
		watch(t, w, first)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		there, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		require.NoError(t, first.Close())
		nc, err := l.Accept() // mostly, it has the descriptor now
		require.NoError(t, err)
		second := New(nc, NewBuffers(16))
		ended := watch(t, w, second)
		if second.watchedAs == first.watchedAs {
			same++
		}
		w.Forget(first)
		require.NoError(t, there.Close())
		heard(t, ended)
		require.NoError(t, second.Close())
		require.NoError(t, l.Close())
	}
	assert.Positive(t, same)
	closed, _ := pair(t, "tcp", "127.0.0.1:0")
	require.NoError(t, closed.Close())
	assert.False(t, w.Watch(closed, func() {}))
}

func TestAClosedWatcherWatchesNothing(t *testing.T) {
	w := newWatcher(t)
	here, there := pair(t, "tcp", "127.0.0.1:0")
	unused := newWatcher(t)
	unused.Close()
	assert.False(t, unused.Watch(here, func() {}))
	ended := watch(t, w, here)
	w.Close()
	w.Close()
	assert.False(t, w.Watch(here, func() {}))
	require.NoError(t, there.Close())
	w.Forget(here)
	assert.Empty(t, ended)
}
