package submitterserver

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func ok(w http.ResponseWriter, r *http.Request) {
	_, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		panic(err)
	}
	say(w, "ok")
}

// ends reads the end of a connection, which comes without an answer.
func ends(t *testing.T, c net.Conn) {
	t.Helper()
	rest, err := io.ReadAll(c)
	assert.NoError(t, err)
	assert.Empty(t, rest)
}

// A connection without a request is closed after a while: another one for the first request than
// for later ones.
func TestIdleConnectionsAreClosed(t *testing.T) {
	const short = 50 * time.Millisecond
	first := servingAs(t, Config{Handler: http.HandlerFunc(ok), HeaderTimeout: short, IdleTimeout: time.Hour, ErrorLog: quiet()}, nil)
	ends(t, dial(t, first.address))

	later := servingAs(t, Config{Handler: http.HandlerFunc(ok), HeaderTimeout: time.Hour, IdleTimeout: short, ErrorLog: quiet()}, nil)
	c := dial(t, later.address)
	in := bufio.NewReader(c)
	_, err := io.WriteString(c, get+get+get)
	require.NoError(t, err)
	for range 3 {
		assert.Equal(t, "200 ok", answer(t, in))
	}
	ends(t, c)
}

// The deadline that a connection has may be that of an earlier wait. When it has passed, the
// connection gets a new one, and waits without a buffer as before.
func TestAnEarlierDeadlineEndsNoConnection(t *testing.T) {
	s := serving(t, http.HandlerFunc(ok), nil)
	const conns = 100
	var open []*bufio.ReadWriter
	for range conns {
		c := dial(t, s.address)
		open = append(open, bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriterSize(c, 0)))
		_, err := io.WriteString(c, get)
		require.NoError(t, err)
		assert.Equal(t, "200 ok", answer(t, open[len(open)-1].Reader))
	}
	await := func(what func(c *conn) bool) {
		t.Helper()
		for _, c := range s.all() {
			require.Eventually(t, func() bool { return c.locked(func() bool { return what(c) }) }, patience, time.Millisecond)
		}
	}
	await(func(c *conn) bool { return c.idle && c.served == 1 })
	before := live()
	for _, c := range s.all() {
		c.locked(func() bool { c.arm(time.Now()); return true })
	}
	await(func(c *conn) bool { return c.idle && time.Until(c.armed) > patience })
	assert.Less(t, (live()-before)/conns, 4000.0)
	for _, c := range open {
		_, err := c.WriteString(get)
		require.NoError(t, err)
		require.NoError(t, c.Flush())
		assert.Equal(t, "200 ok", answer(t, c.Reader))
	}
}

// In a shutdown, a new connection has some time for its first request, but not forever.
func TestShutdownAndNewConnections(t *testing.T) {
	s := serving(t, http.HandlerFunc(ok), nil)
	c := dial(t, s.address)
	inner := s.one(t)
	ended := make(chan error, 1)
	go func() { ended <- s.shutdown(context.Background()) }()
	require.Eventually(t, s.closing.Load, patience, time.Millisecond)
	inner.interruptIdle() // as the shutdown does
	_, err := io.WriteString(c, get)
	require.NoError(t, err)
	assert.Equal(t, "200 ok", answer(t, bufio.NewReader(c)))
	require.NoError(t, <-ended)

	s = serving(t, http.HandlerFunc(ok), nil)
	c = dial(t, s.address)
	inner = s.one(t)
	inner.locked(func() bool { inner.since = inner.since.Add(-newTime); return true })
	require.NoError(t, s.shutdown(context.Background()))
	ends(t, c)
}

// A shutdown does not touch a body that still comes.
func TestAShutdownLeavesBodiesAlone(t *testing.T) {
	s := serving(t, http.HandlerFunc(ok), nil)
	c := dial(t, s.address)
	in := bufio.NewReader(c)
	_, err := io.WriteString(c, get+halfSent)
	require.NoError(t, err)
	assert.Equal(t, "200 ok", answer(t, in))
	inner := s.one(t)
	require.Eventually(t, func() bool { return inner.locked(func() bool { return inner.reading }) }, patience, time.Millisecond)
	ended := make(chan error, 1)
	go func() { ended <- s.shutdown(context.Background()) }()
	require.Eventually(t, s.closing.Load, patience, time.Millisecond)
	inner.interruptIdle() // as the shutdown does
	_, err = io.WriteString(c, "b")
	require.NoError(t, err)
	assert.Equal(t, "200 ok", answer(t, in))
	require.NoError(t, <-ended)
}

// After a request, less than four bytes are nothing at all.
func TestAFewBytesAreNoRequest(t *testing.T) {
	inBoth(t, http.HandlerFunc(ok), func(t *testing.T, address string, _ func(context.Context) error) {
		for n, answered := range []string{"", "", "", "", "HTTP/1.1 400", "HTTP/1.1 400"} {
			c := dial(t, address)
			in := bufio.NewReader(c)
			_, err := io.WriteString(c, get)
			require.NoError(t, err)
			assert.Equal(t, "200 ok", answer(t, in))
			_, err = io.WriteString(c, "GET /"[:n])
			require.NoError(t, err)
			require.NoError(t, c.CloseWrite())
			rest, err := io.ReadAll(in)
			require.NoError(t, err)
			assert.Equal(t, answered, string(rest[:min(len(answered), len(rest))]))
			assert.Equal(t, answered == "", len(rest) == 0)
		}
	})
}
