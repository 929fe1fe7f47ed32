package proxy_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/proxy"
)

// Where the accept queue of a Unix socket is full, a connection waits for room, as it does with TCP.
func TestAUnixSocketWithAFullQueue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}))
	require.NoError(t, syscall.Listen(fd, 0))
	file := os.NewFile(uintptr(fd), path)
	l, err := net.FileListener(file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	defer l.Close()
	queued := 0
	for ; err == nil; queued++ {
		var c net.Conn
		if c, err = net.Dial("unix", path); err == nil {
			defer c.Close()
		}
	}
	require.ErrorIs(t, err, syscall.EAGAIN)

	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = proxy.DialUpstream(short, "tcp", "unix:"+path)
	assert.ErrorIs(t, err, context.DeadlineExceeded)

	dialled := make(chan error)
	go func() {
		c, err := proxy.DialUpstream(t.Context(), "tcp", "unix:"+path)
		if err == nil {
			defer c.Close()
		}
		dialled <- err
	}()
	for range queued {
		c, err := l.Accept()
		require.NoError(t, err)
		defer c.Close()
	}
	assert.NoError(t, <-dialled)
}
