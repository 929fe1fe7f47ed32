package upstreamclient

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/test/peer"
)

// A connection is used again only if no byte is left on it and both sides keep it alive. The cases are those of net/http's
// tests of its transport and our own. After each response, another request is sent.
func TestConnectionsAreUsedAgainAsByTheTransport(t *testing.T) {
	const early, again = "read nothing", true
	big := strings.Repeat("x", 8<<20)
	for name, c := range map[string]struct {
		method, body, answer string
		want                 string // of the first response
		again                bool   // its connection has the second request
	}{
		"a length":                  {"GET", "", ok, `200 "ok"`, again},
		"no body":                   {"GET", "", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", `200 ""`, again},
		"chunks":                    {"GET", "", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", `200 "ok"`, again},
		"compressed chunks":         {"GET", "", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", `200 "ok"`, again},
		"chunks and trailers":       {"GET", "", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: b\r\n\r\n", `200 "ok"`, again},
		"204":                       {"GET", "", "HTTP/1.1 204 No Content\r\n\r\n", `204 ""`, again},
		"304 with a length":         {"GET", "", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", `304 ""`, again},
		"304 with chunks":           {"GET", "", "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", `304 ""`, again},
		"HEAD with a length":        {"HEAD", "", "HTTP/1.1 200 OK\r\nContent-Length: 123\r\n\r\n", `200 ""`, again},
		"HEAD with chunks":          {"HEAD", "", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", `200 ""`, again},
		"interim answers":           {"POST", "{}", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 123 One\r\nFoo: bar\r\n\r\n" + ok, `200 "ok"`, again},
		"HTTP/1.0 that goes on":     {"GET", "", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", `200 "ok"`, again},
		"HTTP/1.0":                  {"GET", "", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", `200 "ok"`, !again},
		"the upstream closes":       {"GET", "", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", `200 "ok"`, !again},
		"408":                       {"GET", "", "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", `408 ""`, !again},
		"an unsolicited answer":     {"GET", "", ok + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", `200 "ok"`, !again},
		"an unsolicited interim":    {"GET", "", ok + "HTTP/1.1 103 Evil\r\n\r\n", `200 "ok"`, !again},
		"a body after 204":          {"GET", "", "HTTP/1.1 204 No Content\r\n\r\nevil", `204 ""`, !again},
		"a body after HEAD":         {"HEAD", "", ok, `200 ""`, !again},
		"a byte after chunks":       {"GET", "", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nx", `200 "ok"`, !again},
		"a switch that none wanted": {"GET", "", "HTTP/1.1 101 Switching Protocols\r\n\r\n", `101 ""`, !again},
		"an early answer":           {early, big, ok, `200 "ok"`, !again},
		"an early refusal":          {early, big, "HTTP/1.1 413 No\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno", `413 "no"`, !again},
		"a malformed head":          {"GET", "", "HTTP/1.1 200 OK\r\nFoo bar\r\n\r\n", "error", !again},
		"no status":                 {"GET", "", "HTTP/1.1\r\n\r\n", "error", !again},
		"a sign in the length":      {"GET", "", "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok", "error", !again},
	} {
		t.Run(name, func(t *testing.T) {
			second, over := make(chan int, 1), make(chan struct{})
			defer close(over)
			up := peer.Listen(t, func(p *peer.Peer) {
				if p.N == 1 {
					if c.method == early {
						_, _ = p.In.ReadString('\n')
					} else {
						p.Request()
					}
					p.Say("%s", c.answer)
					if c.method == early {
						<-over
						return
					}
				}
				if p.Request() != nil {
					second <- p.N
					p.Say(ok)
				}
			})
			client := newClient(t, Config{})
			r := job(up, c.body)
			if c.method != early {
				r.Method = c.method
			}
			got := "error"
			if res, _, err := client.Do(t.Context(), r); err == nil {
				text, err := res.all()
				require.NoError(t, err)
				assert.False(t, res.Unframed())
				got = fmt.Sprintf("%d %q", res.StatusCode, text)
			}
			assert.Equal(t, c.want, got)
			_, text, p := do(t, client, job(up, "{}"))
			assert.Equal(t, "ok", text)
			assert.Equal(t, c.again, p.Reused)
			assert.Equal(t, c.again, <-second == 1)
		})
	}
}

// What an upstream sends on an idle connection, and its end, are noticed before the connection is used again. By TLS
// the client sees no more than that something has come.
func TestIdleConnectionsAreLookedAt(t *testing.T) {
	cfg, dial := identity(t)
	for name, during := range map[string]func(p *peer.Peer, below *net.TCPConn){
		"closed":      func(p *peer.Peer, _ *net.TCPConn) { _ = p.Close() },
		"half closed": func(p *peer.Peer, below *net.TCPConn) { _ = below.CloseWrite(); p.Gone() },
		"reset":       func(_ *peer.Peer, below *net.TCPConn) { _ = below.SetLinger(0); _ = below.Close() },
		"excess": func(p *peer.Peer, _ *net.TCPConn) {
			p.Say("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
			p.Gone()
		},
	} {
		for _, tc := range []struct {
			body string
			cfg  *tls.Config
			dial files.Dial
		}{{"{}", nil, nil}, {strings.Repeat(" ", 2*inline), nil, nil}, {"{}", cfg, dial}} {
			t.Run(name, func(t *testing.T) {
				kept := make(chan struct{})
				up := serveRecords(t, tc.cfg, func(p *peer.Peer, w *wire) {
					p.Request()
					p.Say(ok)
					if p.N == 1 {
						p.Request()
						p.Say(ok)
						<-kept
						during(p, w.Conn.(*net.TCPConn))
					}
				})
				c := newClient(t, Config{Dial: tc.dial})
				do(t, c, job(up, "{}"))
				_, _, p := do(t, c, job(up, "{}"))
				assert.True(t, p.Reused)
				c.mu.Lock()
				first := c.upstreams[up].idle[0]
				c.mu.Unlock()
				close(kept)
				require.Eventually(t, first.Readable, patience, time.Millisecond)
				status, text, p := do(t, c, job(up, tc.body))
				assert.Equal(t, 200, status)
				assert.Equal(t, "ok", text)
				assert.False(t, p.Reused)
				assert.ErrorIs(t, first.Conn.Conn.SetDeadline(time.Time{}), net.ErrClosed)
			})
		}
	}
}

// network connects to scripts over pipes, for tests in fake time.
func network(t testing.TB, script func(*peer.Peer)) func(context.Context, string, string) (net.Conn, error) {
	n := 0
	return func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		n++
		p := peer.Over(t, there)
		p.N = n
		go func() {
			defer there.Close()
			script(p)
		}()
		return here, nil
	}
}

// If an upstream is down, the error is that of the dial, not that of the pooled connection.
func TestDialErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	up, c := l.Addr().String(), newClient(t, Config{})
	go func() {
		nc, _ := l.Accept()
		p := peer.Over(t, nc)
		p.Request()
		_ = l.Close()
		p.Say(ok)
		_ = p.Close()
	}()
	do(t, c, job(up, "{}"))
	require.Eventually(t, c.upstreams[up].idle[0].Readable, patience, time.Millisecond)
	_, p, err := c.Do(t.Context(), job(up, "{}"))
	var dial *DialError
	require.ErrorAs(t, err, &dial)
	assert.False(t, dial.Timeout)
	assert.ErrorContains(t, err, "connection refused")
	assert.Equal(t, Progress{}, p, "it is no stale connection")
}

// A connection is closed after its idle timeout, at most a fifth of it later, and the pool keeps no more than its maximum. A
// connection that a request is about to take stays.
func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Config{Idle: 3})
		var all []*conn
		for range 4 {
			near, _ := net.Pipe()
			all = append(all, newConn(near, 0))
			c.keep("up:1", all[len(all)-1])
		}
		open := func(i int) bool { return all[i].SetDeadline(time.Time{}) == nil }
		assert.False(t, open(3), "one too many")
		u := c.upstreams["up:1"]
		time.Sleep(61 * time.Second)
		synctest.Wait()
		require.Len(t, u.idle, 3)
		<-u.there // a request has seen it, and takes it next
		c.mu.Lock()
		all[2].sweeps = 0
		c.mu.Unlock()
		time.Sleep(13 * time.Second)
		synctest.Wait()
		assert.False(t, open(0))
		assert.False(t, open(1))
		c.mu.Lock()
		assert.Same(t, all[2], u.take())
		c.mu.Unlock()
		assert.True(t, open(2))
		time.Sleep(12 * time.Second)
		synctest.Wait()
		assert.Empty(t, c.upstreams, "it is forgotten")
		c.Close()
		c.keep("up:1", all[2])
		assert.False(t, open(2))
	})
}
