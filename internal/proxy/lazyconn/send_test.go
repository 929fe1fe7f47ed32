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

// message records the calls of Sent.
type message struct {
	bytes []byte
	times int // that Sent was called
	n     int
	err   error
}

func (m *message) Sent(n int, err error) {
	m.times, m.n, m.err, m.bytes = m.times+1, n, err, m.bytes[:0]
}

// answering reads n bytes at the far end, reports them, and responds with the same number of bytes.
func answering(there net.Conn, size int, answer string) <-chan string {
	came := make(chan string, 1)
	go func() {
		b := make([]byte, size)
		n, _ := io.ReadFull(there, b)
		_, _ = io.WriteString(there, answer)
		came <- string(b[:n])
	}()
	return came
}

// A message of any size is written completely, and the wait ends with the first byte of the response.
func TestSendAndAwait(t *testing.T) {
	pipe := func(*testing.T) (*Conn, net.Conn) {
		near, far := net.Pipe()
		return New(near, NewBuffers(16)), far
	}
	for name, connect := range map[string]func(*testing.T) (*Conn, net.Conn){"socket": pair, "pipe": pipe} {
		for _, size := range []int{1, 4 << 10, 16 << 20} {
			here, there := connect(t)
			for range 3 { // on one connection
				m := &message{bytes: bytes.Repeat([]byte("x"), size)}
				came := answering(there, size, "yes")
				require.NoError(t, here.SendAndAwait(m.bytes, m, true), name)
				assert.Len(t, <-came, size)
				assert.Equal(t, message{bytes: []byte{}, times: 1, n: size}, *m, name)
				answer := make([]byte, 3)
				_, err := io.ReadFull(here.In, answer)
				require.NoError(t, err)
				assert.Equal(t, "yes", string(answer))
				here.Release()
			}
		}
	}
}

// Nothing is written to a reused connection that has data to read.
// On a new connection, early data is the response.
func TestSendAndAwaitChecksForDataFirst(t *testing.T) {
	here, there := pair(t)
	_, err := there.Write([]byte("early"))
	require.NoError(t, err)
	require.Eventually(t, func() (there bool) { // the data has arrived and is unread
		assert.NoError(t, here.raw.Control(func(fd uintptr) {
			n, _ := peek(fd)
			there = n > 0
		}))
		return there
	}, patience, time.Millisecond)
	m := &message{bytes: []byte("x")}
	require.NoError(t, here.SendAndAwait(m.bytes, m, false))
	assert.Equal(t, 1, m.times)
	m = &message{bytes: []byte("y")}
	require.ErrorIs(t, here.SendAndAwait(m.bytes, m, true), ErrStale)
	assert.Equal(t, message{bytes: []byte("y")}, *m, "its sender is not called")
	require.NoError(t, here.Close())
	rest, _ := io.ReadAll(there)
	assert.Equal(t, "x", string(rest))
}

// If a message cannot be sent, the error is reported once, and the wait ends.
func TestSendAndAwaitFails(t *testing.T) {
	reset := func(t *testing.T) *Conn {
		here, there := pair(t)
		require.NoError(t, there.(*net.TCPConn).SetLinger(0))
		require.NoError(t, there.Close())
		_, _ = here.Conn.Read(make([]byte, 1)) // the reset has arrived
		return here
	}
	m := &message{bytes: []byte("x")}
	require.Error(t, reset(t).SendAndAwait(m.bytes, m, false))
	assert.Equal(t, 1, m.times)
	require.ErrorContains(t, m.err, "broken pipe")

	here, there := pair(t)
	interrupted := func(size int) (sent int, err error) {
		t.Helper()
		m := &message{bytes: make([]byte, size)}
		require.ErrorIs(t, here.SendAndAwait(m.bytes, m, true), os.ErrDeadlineExceeded)
		assert.Equal(t, 1, m.times)
		here.Failed = nil
		return m.n, m.err
	}
	require.NoError(t, here.SetDeadline(time.Unix(1, 0)))
	n, err := interrupted(1)
	assert.Zero(t, n)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)

	require.NoError(t, here.SetDeadline(time.Time{}))
	require.NoError(t, here.SetReadDeadline(time.Unix(1, 0)))
	n, _ = interrupted(1)
	assert.Zero(t, n, "a request that was withdrawn is not sent")

	interruptAfterAByte := func() {
		_, _ = io.ReadFull(there, make([]byte, 1))
		_ = here.SetDeadline(time.Unix(1, 0))
	}
	require.NoError(t, here.SetDeadline(time.Time{}))
	go interruptAfterAByte()
	n, err = interrupted(1)
	assert.Equal(t, 1, n, "there is no response")
	require.NoError(t, err)

	here, there = pair(t)
	go interruptAfterAByte()
	n, err = interrupted(64 << 20)
	assert.Less(t, n, 64<<20, "nobody reads it")
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}
