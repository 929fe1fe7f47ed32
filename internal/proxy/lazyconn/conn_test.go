//go:build unix

package lazyconn

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// Data is read when it has arrived. The end of the connection or a reset is reported after all data was read.
func TestReadsThatWait(t *testing.T) {
	here, there := pair(t)
	assert.False(t, here.Readable(), "nothing has come")
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
	assert.True(t, here.Readable())
	_, err = here.In.Discard(1)
	require.NoError(t, err)
	assert.False(t, here.Readable())
	require.NoError(t, here.SetReadDeadline(time.Now().Add(time.Millisecond)))
	require.ErrorIs(t, here.Await(), os.ErrDeadlineExceeded)
	require.NoError(t, here.SetReadDeadline(time.Time{}))
	here.Failed = nil
	here.Release()
	require.NoError(t, there.Close())
	assert.ErrorIs(t, here.Await(), io.EOF)

	here, there = pair(t)
	require.NoError(t, there.(*net.TCPConn).SetLinger(0))
	require.NoError(t, there.Close())
	assert.ErrorContains(t, here.Await(), "reset")
	require.NoError(t, here.SetReadDeadline(time.Unix(1, 0)))
	assert.ErrorContains(t, here.Await(), "reset", "the first failure stands")
	assert.ErrorContains(t, here.SendAndAwait([]byte("x"), &message{}, false), "reset")
}

// patience is the timeout of every wait of these tests.
const patience = 2 * time.Minute

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
