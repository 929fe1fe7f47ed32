//go:build unix

package lazyconn

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// counted is a socket that counts the settings of its deadlines.
type counted struct {
	*net.TCPConn
	reads, writes atomic.Int64
}

func (c *counted) SetReadDeadline(at time.Time) error {
	c.reads.Add(1)
	return c.TCPConn.SetReadDeadline(at)
}

func (c *counted) SetWriteDeadline(at time.Time) error {
	c.writes.Add(1)
	return c.TCPConn.SetWriteDeadline(at)
}

// countedPair is a pair whose deadlines are in an hour, but end in a moment at the socket.
func countedPair(t *testing.T) (here *Conn, socket *counted, there net.Conn) {
	first, there := pair(t)
	socket = &counted{TCPConn: first.Conn.(*net.TCPConn)}
	here = New(socket, NewBuffers(16))
	require.NoError(t, here.SetDeadline(time.Now().Add(time.Millisecond)))
	require.NoError(t, here.SetDeadline(time.Now().Add(time.Hour)))
	require.Equal(t, []int64{1, 1}, []int64{socket.reads.Load(), socket.writes.Load()}, "the earlier one is kept")
	return here, socket, there
}

// Only an earlier deadline is set at once.
func TestDeadlines(t *testing.T) {
	here, socket, _ := countedPair(t)
	for _, at := range []time.Time{{}, time.Now().Add(2 * time.Hour)} {
		require.NoError(t, here.SetDeadline(at))
		require.Equal(t, []int64{1, 1}, []int64{socket.reads.Load(), socket.writes.Load()})
	}
	require.NoError(t, here.SetReadDeadline(time.Unix(1, 0)))
	assert.Equal(t, []int64{2, 1}, []int64{socket.reads.Load(), socket.writes.Load()})
	assert.ErrorIs(t, here.Await(), os.ErrDeadlineExceeded)
	require.NoError(t, here.SetWriteDeadline(time.Unix(1, 0)))
	_, err := here.Write([]byte("x"))
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// A read that the socket's deadline ends too early waits on, and an interruption ends it.
func TestReadsThatEndEarly(t *testing.T) {
	for name, read := range map[string]func(c *Conn) error{
		"Await": (*Conn).Await,
		"Ask":   func(c *Conn) error { return c.SendAndAwait([]byte("x"), &message{}, true) },
		"Read": func(c *Conn) error {
			_, err := c.Read(make([]byte, 1))
			return err
		},
		"WaitForEnd": func(c *Conn) error {
			if c.WaitForEnd() {
				return io.EOF
			}
			return os.ErrDeadlineExceeded
		},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			begin := func() (*Conn, net.Conn) {
				here, socket, there := countedPair(t)
				go func() { ended <- read(here) }()
				require.Eventually(t, func() bool { return socket.reads.Load() == 2 }, patience, time.Millisecond)
				require.Empty(t, ended)
				return here, there
			}
			here, _ := begin()
			require.NoError(t, here.SetReadDeadline(time.Unix(1, 0)))
			require.ErrorIs(t, <-ended, os.ErrDeadlineExceeded)
			_, there := begin()
			require.NoError(t, there.(*net.TCPConn).CloseWrite())
			require.ErrorIs(t, <-ended, io.EOF)
		})
	}
}

// A write that the socket's deadline ends too early is continued where it ended.
func TestWritesThatEndEarly(t *testing.T) {
	sent := bytes.Repeat([]byte("0123456789"), 1<<20)
	for name, write := range map[string]func(c *Conn) error{
		"Write": func(c *Conn) error {
			_, err := c.Write(sent)
			return err
		},
		"WriteBuffers": func(c *Conn) error { return c.WriteBuffers(net.Buffers{sent[:7], nil, sent[7:]}) },
		"Ask":          func(c *Conn) error { return c.SendAndAwait(sent, &message{}, true) },
	} {
		t.Run(name, func(t *testing.T) {
			here, socket, there := countedPair(t)
			ended := make(chan error, 1)
			go func() { ended <- write(here) }()
			require.Eventually(t, func() bool { return socket.writes.Load() == 2 }, patience, time.Millisecond)
			got := make([]byte, len(sent))
			_, err := io.ReadFull(there, got)
			require.NoError(t, err)
			require.True(t, bytes.Equal(sent, got))
			_, err = there.Write([]byte("y"))
			require.NoError(t, err)
			require.NoError(t, <-ended)
		})
	}
}
