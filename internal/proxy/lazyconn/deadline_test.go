//go:build unix

package lazyconn

import (
	"bytes"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// earlyPair is a pair whose deadlines are in an hour, but end in a moment at the socket.
func earlyPair(t *testing.T) (here *Conn, there net.Conn) {
	here, there = pair(t)
	require.NoError(t, here.SetDeadline(time.Now().Add(time.Millisecond)))
	require.NoError(t, here.SetDeadline(time.Now().Add(time.Hour)))
	require.Equal(t, [2]bool{true, true}, here.endEarly(), "the earlier one is kept")
	return here, there
}

// endEarly reports whether the socket's deadlines of reads and of writes are not the wanted ones.
func (c *Conn) endEarly() [2]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return [2]bool{c.reads.armed != c.reads.wanted, c.writes.armed != c.writes.wanted}
}

// Only an earlier deadline is set at once.
func TestDeadlines(t *testing.T) {
	here, _ := earlyPair(t)
	for _, at := range []time.Time{{}, time.Now().Add(2 * time.Hour)} {
		require.NoError(t, here.SetDeadline(at))
		require.Equal(t, [2]bool{true, true}, here.endEarly())
	}
	require.NoError(t, here.SetReadDeadline(time.Unix(1, 0)))
	assert.Equal(t, [2]bool{false, true}, here.endEarly())
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
				here, there := earlyPair(t)
				go func() { ended <- read(here) }()
				require.Eventually(t, func() bool { return !here.endEarly()[0] }, patience, time.Millisecond)
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
			here, there := earlyPair(t)
			ended := make(chan error, 1)
			go func() { ended <- write(here) }()
			require.Eventually(t, func() bool { return !here.endEarly()[1] }, patience, time.Millisecond)
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
