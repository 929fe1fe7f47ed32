package submitterserver

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/proxy/lazyconn"
)

const chunked = "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"

// What is known of a connection ends with it: each leaves nothing behind in the context of all.
func TestAContextEndsWithItsConnection(t *testing.T) {
	contexts := make(chan context.Context, 1)
	s := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		contexts <- r.Context()
		say(w, "ok")
	}), nil)
	c := dial(t, s.address)
	_, err := io.WriteString(c, get)
	require.NoError(t, err)
	ctx := <-contexts
	assert.Equal(t, "200 ok", answer(t, bufio.NewReader(c)))
	require.NoError(t, ctx.Err())
	require.NoError(t, c.Close())
	soon(t, ctx.Done())
}

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
	_, err = io.WriteString(c, chunked)
	require.NoError(t, err)
	soon(t, s.behind)
	inner.interruptIdle() // as a shutdown does that began before
	_, err = io.WriteString(c, "0\r\n\r\n")
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
	sent := func(i int) string { return fmt.Sprintf("GET /%d HTTP/1.0\r\n\r\n", i) }
	const conns = 20
	for i := range conns {
		c := dial(t, l.Addr().String())
		_, err := io.WriteString(c, sent(i))
		require.NoError(t, err)
		require.NoError(t, c.CloseWrite())
		nc, err := l.Accept()
		require.NoError(t, err)
		defer nc.Close()
		s.newConn(lazyconn.New(nc, s.buffers), func(nc net.Conn) { handed = append(handed, nc) }).serve()
	}
	require.Len(t, handed, conns)
	for i, nc := range handed {
		text, err := io.ReadAll(nc)
		require.NoError(t, err)
		assert.Equal(t, sent(i), string(text))
	}
}

// A panic is logged, unless it is the one that ends an answer on purpose.
func TestPanicsAreLogged(t *testing.T) {
	for value, logged := range map[any]string{"as ordered": "panic serving 127.0.0.1", http.ErrAbortHandler: ""} {
		var text bytes.Buffer
		s := servingAs(t, Config{
			Handler:       http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(value) }),
			HeaderTimeout: time.Hour, IdleTimeout: time.Hour, ErrorLog: log.New(&text, "", 0),
		}, nil)
		c := dial(t, s.address)
		_, err := io.WriteString(c, get)
		require.NoError(t, err)
		ends(t, c)
		require.NoError(t, s.shutdown(context.Background()))
		assert.Contains(t, text.String(), logged)
		assert.Equal(t, logged == "", text.Len() == 0, &text)
	}
}

// halves counts the times that a connection's sending ended before the connection.
type halves struct {
	*net.TCPConn
	ended *atomic.Int64
}

func (h halves) CloseWrite() error {
	h.ended.Add(1)
	return h.TCPConn.CloseWrite()
}

// An answer to a body that was not read is followed by an orderly end, whatever the submitter has
// sent: a reset might overtake the answer. A submitter that stays is not waited for.
func TestARefusedBodyResetsNoConnection(t *testing.T) {
	var ended atomic.Int64
	s := serving(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { say(w, "no") }),
		func(c net.Conn) net.Conn { return halves{c.(*net.TCPConn), &ended} })
	for range 3 {
		c := dial(t, s.address)
		_, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"+strings.Repeat("x", 50_000))
		require.NoError(t, err)
		in := bufio.NewReader(c)
		assert.Equal(t, "200 no", answer(t, in))
		_, err = in.ReadByte()
		require.ErrorIs(t, err, io.EOF)
	}
	assert.EqualValues(t, 3, ended.Load())
	require.Eventually(t, func() bool { return len(s.all()) == 0 }, patience, time.Millisecond)
}

// A deadline for reading is that of its request's body.
func TestADeadlineForReadingEndsWithItsRequest(t *testing.T) {
	inBoth(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		assert.NoError(t, err)
		if r.URL.Path == "/first" {
			assert.NoError(t, http.NewResponseController(w).SetReadDeadline(time.Now()))
		}
		say(w, "ok")
	}), func(t *testing.T, address string, _ func(context.Context) error) {
		c := dial(t, address)
		in := bufio.NewReader(c)
		_, err := io.WriteString(c, "POST /first HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\na")
		require.NoError(t, err)
		assert.Equal(t, "200 ok", answer(t, in))
		_, err = io.WriteString(c, halfSent)
		require.NoError(t, err)
		time.Sleep(time.Millisecond) // mostly, the body is waited for by now
		_, err = io.WriteString(c, "b")
		require.NoError(t, err)
		assert.Equal(t, "200 ok", answer(t, in))
	})
}

// A connection on which an answer could not be written ends: its submitter may wait for the rest.
func TestAnAnswerThatFailsEndsItsConnection(t *testing.T) {
	inBoth(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		assert.NoError(t, http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0)))
		say(w, "late")
	}), func(t *testing.T, address string, _ func(context.Context) error) {
		c := dial(t, address)
		_, err := io.WriteString(c, get)
		require.NoError(t, err)
		ends(t, c)
	})
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
	require.Eventually(t, func() bool { return len(s.all()) == 0 }, patience, time.Millisecond)
	assert.EqualValues(t, 1, requests.Load())
	(<-reading).mu.Unlock()
}
