package submitterserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/proxy/lazyconn"
)

// handedOn begins a request that is not served here.
const handedOn = "POST http://localhost/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n"

// Nothing of what was done with a connection that is handed on reaches what follows.
func TestAConnectionThatIsHandedOnIsLeftAlone(t *testing.T) {
	s := serving(t, http.HandlerFunc(ok), nil)
	c := dial(t, s.address)
	in := bufio.NewReader(c)
	_, err := io.WriteString(c, get)
	require.NoError(t, err)
	assert.Equal(t, "200 ok", answer(t, in))
	inner := s.one(t)
	require.NoError(t, inner.SetWriteDeadline(time.Unix(1, 0))) // that of an answer, long ago
	_, err = io.WriteString(c, handedOn)
	require.NoError(t, err)
	soon(t, s.behind)
	inner.interruptIdle() // as a shutdown does that began before
	_, err = io.WriteString(c, "ab")
	require.NoError(t, err)
	res, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, res.StatusCode)
	require.NoError(t, res.Body.Close())
}

// What was read of a connection that is handed on is its own: the next one gets the buffer.
func TestWhatWasSeenOfAConnectionIsItsOwn(t *testing.T) {
	s := serving(t, http.HandlerFunc(ok), nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	var handed []net.Conn
	sent := func(i int) string { return fmt.Sprintf("GET http://localhost/%d HTTP/1.1\r\n\r\n", i) }
	const conns = 20
	for i := range conns {
		c := dial(t, l.Addr().String())
		_, err := io.WriteString(c, sent(i))
		require.NoError(t, err)
		require.NoError(t, c.CloseWrite())
		nc, err := l.Accept()
		require.NoError(t, err)
		defer nc.Close()
		s.newConn(lazyconn.New(nc, s.buffers), nc.(tcpConn), func(nc net.Conn) { handed = append(handed, nc) }).serve()
	}
	require.Len(t, handed, conns)
	for i, nc := range handed {
		text, err := io.ReadAll(nc)
		require.NoError(t, err)
		assert.Equal(t, sent(i), string(text))
	}
}

// A connection whose body somebody still reads when its request has ended is not used again.
func TestABodyThatIsStillReadEndsItsConnection(t *testing.T) {
	reading := make(chan *body, 1)
	var requests atomic.Int64
	s := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ok(w, r)
		if requests.Add(1) > 1 {
			return
		}
		b := r.Body.(*body)
		b.mu.Lock() // as its Read does
		reading <- b
	}), nil)
	c := dial(t, s.address)
	_, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\na"+get)
	require.NoError(t, err)
	in := bufio.NewReader(c)
	assert.Equal(t, "200 ok", answer(t, in))
	_, err = in.ReadByte()
	require.Error(t, err)
	require.NoError(t, c.Close())
	require.Eventually(t, func() bool { return len(s.all()) == 0 }, patience, time.Millisecond)
	assert.EqualValues(t, 1, requests.Load())
	(<-reading).mu.Unlock()
}
