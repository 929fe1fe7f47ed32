//go:build unix

package lazyconn

import (
	"crypto/rand"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A large piece arrives whole, although the socket takes it in parts and the other side is slow.
func TestALargePieceIsWrittenWhole(t *testing.T) {
	here, there := pair(t, "tcp", "127.0.0.1:0")
	sent := make([]byte, 16<<20)
	_, _ = rand.Read(sent)
	type outcome struct {
		n   int
		err error
	}
	written := make(chan outcome, 1)
	go func() {
		n, err := here.Write(sent)
		written <- outcome{n, err}
	}()
	came := make([]byte, len(sent))
	_, err := io.ReadFull(there, came)
	require.NoError(t, err)
	assert.Equal(t, outcome{len(sent), nil}, <-written)
	assert.Equal(t, sent, came)
}

// A write ends at its deadline when the other side takes no more, and tells how much was written.
func TestAWriteEndsAtItsDeadline(t *testing.T) {
	here, there := pair(t, "tcp", "127.0.0.1:0")
	sent := make([]byte, 64<<20)
	_, _ = rand.Read(sent)
	require.NoError(t, here.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
	n, err := here.Write(sent)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Less(t, n, len(sent))
	require.NoError(t, here.Close())
	came, err := io.ReadAll(there)
	require.NoError(t, err)
	assert.Equal(t, sent[:n], came)
}

// A write to a connection that the other side has reset says so; on one that is closed, it fails too.
func TestAWriteThatFails(t *testing.T) {
	here, there := pair(t, "tcp", "127.0.0.1:0")
	require.NoError(t, there.(*net.TCPConn).SetLinger(0))
	require.NoError(t, there.Close())
	_, _ = here.Conn.Read(make([]byte, 1)) // the reset has come
	n, err := here.Write([]byte("x"))
	assert.Zero(t, n)
	assert.ErrorContains(t, err, "broken pipe")
	require.NoError(t, here.Close())
	_, err = here.Write([]byte("x"))
	assert.ErrorIs(t, err, net.ErrClosed)
}

// A write that waits ends when the connection is closed.
func TestCloseEndsAWrite(t *testing.T) {
	here, _ := pair(t, "tcp", "127.0.0.1:0")
	failed := make(chan error, 1)
	begun := make(chan struct{})
	go func() {
		close(begun)
		_, err := here.Write(make([]byte, 64<<20))
		failed <- err
	}()
	<-begun
	require.NoError(t, here.Close())
	assert.ErrorIs(t, <-failed, net.ErrClosed)
}

// Where there is no socket below, as on a pipe, writes are those of the connection.
func TestAWriteToAPipe(t *testing.T) {
	near, far := net.Pipe()
	here := New(near, NewBuffers(16))
	go func() {
		_, _ = here.Write([]byte("abc"))
		_ = here.Close()
	}()
	came, err := io.ReadAll(far)
	require.NoError(t, err)
	assert.Equal(t, "abc", string(came))
}

// What comes is read when it has come; the end, and a reset, are told once all was read.
func TestReadsThatWait(t *testing.T) {
	here, there := pair(t, "tcp", "127.0.0.1:0")
	assert.False(t, here.More(), "nothing has come")
	assert.Nil(t, here.In, "it needs no buffer")
	sent := make(chan error, 1)
	go func() {
		_, err := there.Write([]byte("ab"))
		sent <- err
	}()
	require.NoError(t, here.Await())
	require.NoError(t, <-sent)
	b, err := here.In.ReadByte()
	require.NoError(t, err)
	assert.Equal(t, byte('a'), b)
	assert.True(t, here.More())
	_, err = here.In.Discard(1)
	require.NoError(t, err)
	assert.False(t, here.More())
	require.NoError(t, here.SetReadDeadline(time.Now().Add(time.Millisecond)))
	require.ErrorIs(t, here.Await(), os.ErrDeadlineExceeded)
	require.NoError(t, here.SetReadDeadline(time.Time{}))
	here.Failed = nil
	here.Release()
	require.NoError(t, there.Close())
	assert.ErrorIs(t, here.Await(), io.EOF)

	here, there = pair(t, "tcp", "127.0.0.1:0")
	require.NoError(t, there.(*net.TCPConn).SetLinger(0))
	require.NoError(t, there.Close())
	assert.ErrorContains(t, here.Await(), "reset")
	require.NoError(t, here.SetReadDeadline(time.Unix(1, 0)))
	assert.ErrorContains(t, here.Await(), "reset", "the first failure stands")
	assert.ErrorContains(t, here.Ask(&message{bytes: []byte("x")}, false), "reset")
}

// What has been read does not wait, whatever the deadline, and a connection that was closed here
// is not idle.
func TestReadsThatDoNotWait(t *testing.T) {
	here, there := pair(t, "tcp", "127.0.0.1:0")
	_, err := there.Write([]byte("a"))
	require.NoError(t, err)
	require.NoError(t, here.Await())
	require.NoError(t, here.SetReadDeadline(time.Unix(1, 0)))
	require.NoError(t, here.Await())
	require.NoError(t, here.Failed)
	assert.True(t, here.More())
	require.NoError(t, here.Close())
	assert.Nil(t, here.In)
	assert.True(t, here.More())
}

// No more than Left is read, and what follows is no end.
func TestReadsAreBounded(t *testing.T) {
	here, there := pair(t, "tcp", "127.0.0.1:0")
	_, err := there.Write([]byte("abc"))
	require.NoError(t, err)
	here.Left = 2
	require.NoError(t, here.Await())
	came, err := io.ReadAll(here.In)
	assert.Equal(t, "ab", string(came))
	require.ErrorIs(t, err, errLimit)
}

// A socket that blocks, because of what somebody did to it, stops no thread.
func TestASocketThatBlocks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the calls of other systems have no such flag")
	}
	here, there := pair(t, "tcp", "127.0.0.1:0")
	require.NoError(t, here.raw.Control(func(fd uintptr) { assert.NoError(t, syscall.SetNonblock(int(fd), false)) }))
	assert.False(t, here.More(), "nothing has come")
	require.NoError(t, here.SetWriteDeadline(time.Now().Add(10*time.Millisecond)))
	_, err := here.Write(make([]byte, 64<<20))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, there.Close())
}
