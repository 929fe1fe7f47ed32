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

// ends requires that a connection ends without a response.
func ends(t *testing.T, c net.Conn) {
	t.Helper()
	rest, err := io.ReadAll(c)
	assert.NoError(t, err)
	assert.Empty(t, rest)
}

// A connection is closed after its idle timeout.
func TestIdleConnectionsAreClosed(t *testing.T) {
	const short = 50 * time.Millisecond
	s := servingAs(t, Config{Handler: http.HandlerFunc(ok), IdleTimeout: short, ErrorLog: quiet()}, nil)
	ends(t, dial(t, s.address))
	c := dial(t, s.address)
	in := bufio.NewReader(c)
	_, err := io.WriteString(c, get+get+get)
	require.NoError(t, err)
	for range 3 {
		assert.Equal(t, "200 ok", answer(t, in))
	}
	ends(t, c)
}

// net/http's server is shut down only after it has begun to serve the handed connections: it drops requests that it
// reads during its shutdown.
func TestShutdownLosesNothingThatIsHandedOn(t *testing.T) {
	s := serving(t, http.HandlerFunc(ok), nil)
	read, next := make(chan struct{}), make(chan struct{})
	active := func() { // after this, net/http looks whether it shuts down
		close(read)
		select {
		case <-next:
		case <-time.After(100 * time.Millisecond):
		}
	}
	s.active.Store(&active)
	c := dial(t, s.address)
	_, err := io.WriteString(c, handedOn)
	require.NoError(t, err)
	soon(t, read)
	ended := make(chan error, 1)
	go func() {
		ended <- s.Shutdown(context.Background(), func(ctx context.Context) error {
			close(next)
			return s.http.Shutdown(ctx)
		})
	}()
	assert.Equal(t, "200 ok", answer(t, bufio.NewReader(c)))
	require.NoError(t, <-ended)
	assert.Empty(t, s.handed)
}

// In a shutdown, a new connection has some time for its first request, also for one that is not
// plain, but not forever.
func TestShutdownAndNewConnections(t *testing.T) {
	for _, request := range []string{get, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"} {
		s := serving(t, http.HandlerFunc(ok), nil)
		c := dial(t, s.address)
		inner := s.one(t)
		ended := make(chan error, 1)
		go func() { ended <- s.Shutdown(context.Background(), s.http.Shutdown) }()
		require.Eventually(t, func() bool { return !s.accepts.Load() }, patience, time.Millisecond)
		inner.interruptIdle() // as the shutdown does
		_, err := io.WriteString(c, request)
		require.NoError(t, err)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err, "%q", request)
		assert.True(t, res.Close, "Connection: close is sent")
		require.NoError(t, res.Body.Close())
		require.NoError(t, <-ended)
	}

	s := serving(t, http.HandlerFunc(ok), nil)
	c := dial(t, s.address)
	inner := s.one(t)
	inner.locked(func() bool { inner.since = inner.since.Add(-newTime); return true })
	require.NoError(t, s.Shutdown(context.Background(), s.http.Shutdown))
	ends(t, c)
}
