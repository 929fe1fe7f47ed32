package submitterserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/record"
)

const get = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

func say(w http.ResponseWriter, text string) {
	w.Header()["Content-Type"] = nil
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	_, _ = io.WriteString(w, text)
}

// Requests of all kinds are served here, whole or in pieces, first or after another, and so is the request after them.
// net/http's server gets only HTTP/2. After a request in which another server may find another body, the connection ends
// (RFC 9112, 6.1): the rest could be a request that the other server has not seen.
func TestRequestsOfAllKindsAreServedHere(t *testing.T) {
	const start = "POST / HTTP/1.1\r\nHost: localhost\r\n"
	const old = "POST / HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n"
	const chunked = "Transfer-Encoding: chunked\r\n"
	many := strings.Repeat("X: y\r\n", 200)
	for _, c := range []struct {
		text string
		ends bool // it is the last request of its connection
	}{
		{get, false},
		{start + "Content-Length: 1\r\nConnection: Keep-Alive\r\n\r\na", false},
		{start + "Connection: keep-alive\r\nConnection: close\r\n\r\n", true},
		{start + "Upgrade: other\r\n\r\n", false},
		{start + "HTTP2-Settings: x\r\n\r\n", false},
		{"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n", true},
		{"POST http://localhost/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab", false},
		{start + chunked + "\r\n0\r\n\r\n", false},
		{start + "Content-Length: 2\r\n" + chunked + "\r\n0\r\n\r\n", true},
		{start + "Content-Length: 2\r\n" + chunked + many + "\r\n0\r\n\r\n", true},
		{old + "Content-Length: 2\r\n\r\nab", false},
		{old + "Content-Length: 2\r\n" + chunked + "\r\nab", true},
		{old + chunked + "\r\n", true},
		{old + chunked + many + "\r\n", true},
		{start + "Content-Length: 6000\r\nX: " + strings.Repeat("x", maxHead) + "\r\n\r\n" + strings.Repeat("y", 6000), false},
		{start + "Content-Length: 2\r\n" + strings.Repeat("X: y\r\n", 4000) + "\r\nab", false},
	} {
		for _, before := range []string{"", get} {
			for _, split := range []int{0, 20, len(c.text) / 2} {
				s := serving(t, http.HandlerFunc(ok), nil)
				conn := dial(t, s.address)
				conn.says(before + c.text[:split])
				inner := s.one(t)
				if before != "" {
					conn.served("%.60q", c.text)
				}
				if split > 0 {
					begun := func() bool { return inner.state == starting || inner.state == reading }
					require.Eventually(t, func() bool { return inner.locked(begun) }, patience, time.Millisecond)
				}
				conn.says(c.text[split:] + get)
				conn.served("%.60q", c.text)
				_, err := conn.in.Peek(1)
				assert.Equal(t, c.ends, err != nil, "%.60q", c.text)
				if !c.ends {
					conn.served("%.60q", c.text)
				}
				assert.Empty(t, s.behind, "%.60q", c.text)
			}
		}
	}
}

// Every response of the server itself is a problem document that names its reason, and ends the connection.
func TestOwnResponsesAreProblems(t *testing.T) {
	budget := intake.NewBudget(longHead, 0)
	s := servingAs(t, Config{Handler: http.HandlerFunc(ok), IdleTimeout: time.Hour, ErrorLog: quiet(), Budget: budget}, nil)
	const host = " HTTP/1.1\r\nHost: localhost\r\n"
	long := "GET /" + host + strings.Repeat("X: y\r\n", 8000)
	for _, c := range []struct{ sent, want string }{
		{"GET / HTTP/1.1\r\n\r\n", "400 malformed-head "},
		{"GET /\r\n\r\n", "400 malformed-head "},
		{"GET /" + host + "X Y: 1\r\n\r\n", "400 malformed-head "},
		{"GET /" + host + "X transfer encoding\r\n\r\n", "400 malformed-head "},
		{get + "GET / HTTP/1.1\r\nHost: a b\r\nSet-Cookie: reflected\r\n\r\n", "400 malformed-head "},
		{get + "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400 malformed-head "},
		{"POST /" + host + "Transfer-Encoding: gzip\r\n\r\n", "501 transfer-coding "},
		{"GET / HTTP/3.0\r\nHost: localhost\r\n\r\n", "505 http-version "},
		{"GET /" + host + "Expect: x\r\n\r\n", "417 expectation-failed "},
		{long + "\r\n", "431 head-too-large "},
		{long, "503 no-room 1"}, // the last: all of the budget is used
	} {
		if strings.HasPrefix(c.want, "503") {
			require.NoError(t, budget.Reserve(longHead))
		}
		conn := dial(t, s.address)
		conn.says(c.sent)
		if strings.HasPrefix(c.sent, get) {
			conn.served()
		}
		r := conn.response()
		var problem record.Problem
		require.NoError(t, json.Unmarshal([]byte(r.body), &problem))
		assert.Equal(t, c.want, fmt.Sprint(r.status, " ", r.header.Get("Pilotfish-Reason"), " ", r.header.Get("Retry-After")), "%.60q", c.sent)
		assert.Equal(t, "application/problem+json", r.header.Get("Content-Type"))
		assert.Empty(t, r.header.Get("Set-Cookie"), "a header of the request is in the response")
		assert.Equal(t, []any{r.status, true}, []any{problem.Status, r.ends})
		conn.ends()
	}
}

func ok(w http.ResponseWriter, r *http.Request) {
	_, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		panic(err)
	}
	say(w, "ok")
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
	c.says(handedOn)
	soon(t, read)
	ended := make(chan error, 1)
	go func() {
		ended <- s.Shutdown(context.Background(), func(ctx context.Context) error {
			close(next)
			return s.http.Shutdown(ctx)
		})
	}()
	c.served()
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
		c.says(request)
		assert.True(t, c.response().ends, "Connection: close is sent, %q", request)
		require.NoError(t, <-ended)
	}

	s := serving(t, http.HandlerFunc(ok), nil)
	c := dial(t, s.address)
	inner := s.one(t)
	inner.locked(func() bool { inner.since = inner.since.Add(-newTime); return true })
	require.NoError(t, s.Shutdown(context.Background(), s.http.Shutdown))
	c.ends()
}

// A shutdown neither waits for connections that linger nor reports them as open: their responses are sent.
func TestShutdownLeavesLingeringConnections(t *testing.T) {
	expired, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{expired, t.Context()} {
		s := serving(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { say(w, "ok") }), nil) // reads no body
		c := dial(t, s.address)
		c.says("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
		inner := s.one(t)
		c.served()
		lingers := func() bool { return inner.locked(func() bool { return inner.state == lingering }) }
		require.Eventually(t, lingers, patience, time.Millisecond)
		require.NoError(t, s.Shutdown(ctx, s.http.Shutdown))
		assert.True(t, lingers())
		require.NoError(t, c.Close())
	}
}
