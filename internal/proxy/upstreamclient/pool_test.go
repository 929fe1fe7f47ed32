package upstreamclient

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConnectionsAreKept(t *testing.T) {
	var conns atomic.Int32
	up := listen(t, func(p *peer) {
		conns.Add(1)
		for r, _ := p.request(); r != nil; r, _ = p.request() {
			p.say(ok)
		}
	})
	c := newClient(t, Config{})
	for i := range 5 {
		status, text, p := do(t, c, job(up, "{}"))
		assert.Equal(t, 200, status)
		assert.Equal(t, "ok", text)
		assert.Equal(t, Progress{Reused: i > 0, Begun: true, InFull: true, Answered: true}, p)
	}
	assert.EqualValues(t, 1, conns.Load())
	c.pool.mu.Lock()
	assert.Nil(t, c.pool.upstreams[up].idle[0].In, "it needs no buffer while it is idle")
	c.pool.mu.Unlock()

	fresh := job(up, "{}")
	fresh.Fresh = true
	_, _, p := do(t, c, fresh)
	assert.False(t, p.Reused)
	assert.Equal(t, 2, c.Idle()[up], "a fresh connection is pooled, too")
}

// A connection is used again only if nothing is left on it and both sides mean to go on.
func TestConnectionsThatAreNotKept(t *testing.T) {
	for name, answer := range map[string]string{
		"the upstream closes":      "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.0":                 "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"excess":                   ok + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
		"the body of a bodiless":   "HTTP/1.1 204 No Content\r\n\r\nevil",
		"switching nobody asked":   "HTTP/1.1 101 Switching Protocols\r\n\r\n",
		"a length beside chunks":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nx",
		"an interim answer, after": ok + "HTTP/1.1 103 Evil\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			up := listen(t, func(p *peer) {
				for r, _ := p.request(); r != nil; r, _ = p.request() {
					p.say("%s", answer)
				}
			})
			c := newClient(t, Config{})
			do(t, c, job(up, "{}"))
			assert.Zero(t, c.Idle()[up])
		})
	}
}

// What an upstream sends on an idle connection, and its end, are noticed before
// the connection is used again.
func TestIdleConnectionsAreLookedAt(t *testing.T) {
	for name, meanwhile := range map[string]func(*peer){
		"closed":      func(p *peer) { _ = p.Close() },
		"half closed": func(p *peer) { _ = p.Conn.(*net.TCPConn).CloseWrite(); p.gone() },
		"reset":       (*peer).reset,
		"excess":      func(p *peer) { p.say("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"); p.gone() },
	} {
		for body, swept := range map[string]bool{"{}": false, "[]": true, strings.Repeat(" ", 2*inline): false} {
			t.Run(name, func(t *testing.T) {
				kept := make(chan struct{})
				up := listen(t, func(p *peer) {
					p.request()
					p.say(ok)
					if p.n == 1 {
						<-kept
						meanwhile(p)
					}
				})
				c := newClient(t, Config{})
				do(t, c, job(up, "{}"))
				require.Equal(t, 1, c.Idle()[up])
				c.pool.mu.Lock()
				first := c.pool.upstreams[up].idle[0]
				c.pool.mu.Unlock()
				close(kept)
				require.Eventually(t, first.More, patience, time.Millisecond)
				if swept {
					c.pool.sweep()
					assert.Zero(t, c.Idle()[up])
				}
				status, text, p := do(t, c, job(up, body))
				assert.Equal(t, 200, status)
				assert.Equal(t, "ok", text)
				assert.False(t, p.Reused)
				assert.ErrorIs(t, first.SetDeadline(time.Time{}), net.ErrClosed)
			})
		}
	}
}

func TestIdleConnectionsAreBounded(t *testing.T) {
	up := listen(t, func(p *peer) {
		for r, _ := p.request(); r != nil; r, _ = p.request() {
			p.say(ok)
		}
	})
	c := newClient(t, Config{Idle: 2})
	var open []*Response
	for range 4 {
		res, _, err := c.Do(context.Background(), job(up, "{}"))
		require.NoError(t, err)
		open = append(open, res)
	}
	for _, res := range open {
		_, err := res.all()
		require.NoError(t, err)
	}
	assert.Equal(t, 2, c.Idle()[up])
}

// network connects to scripts over pipes, in a bubble of fake time.
func network(script func(*peer)) func(context.Context, string, string) (net.Conn, error) {
	n := 0
	return func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		n++
		p := &peer{Conn: there, in: newReader(there), n: n}
		go func() {
			defer there.Close()
			script(p)
		}()
		return here, nil
	}
}

func TestIdleConnectionsAreClosedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		var ended []time.Duration
		c := newClient(t, Config{IdleTimeout: 50 * time.Second, Dial: network(func(p *peer) {
			for r, _ := p.request(); r != nil; r, _ = p.request() {
				p.say(ok)
			}
			ended = append(ended, time.Since(started))
		})})
		do(t, c, job("up:1", "{}"))
		time.Sleep(26 * time.Second) // not with a sweep, which holds the connections for a moment
		do(t, c, job("up:1", "{}"))
		time.Sleep(43 * time.Second)
		assert.Equal(t, 1, c.Idle()["up:1"])
		time.Sleep(18 * time.Second)
		assert.Zero(t, c.Idle()["up:1"])
		synctest.Wait()
		require.Len(t, ended, 1)
		assert.InDelta(t, 85, ended[0].Seconds(), 6)
		assert.Nil(t, c.pool.sweeper, "no timer runs while no connection is idle")
	})
}

func TestClosedClientsKeepNothing(t *testing.T) {
	up := listen(t, func(p *peer) {
		for r, _ := p.request(); r != nil; r, _ = p.request() {
			p.say(ok)
		}
	})
	c := newClient(t, Config{})
	var open []*Response
	for range 2 {
		res, _, err := c.Do(context.Background(), job(up, "{}"))
		require.NoError(t, err)
		open = append(open, res)
	}
	_, err := open[0].all()
	require.NoError(t, err)
	require.Equal(t, 1, c.Idle()[up])
	c.Close()
	assert.Zero(t, c.Idle()[up])
	_, err = open[1].all()
	require.NoError(t, err)
	assert.Zero(t, c.Idle()[up])
}

func TestDialErrors(t *testing.T) {
	never := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Config{Dial: never})
		started := time.Now()
		r := job("up:1", "{}")
		r.ConnectTimeout = 2 * time.Second
		_, p, err := c.Do(context.Background(), r)
		var dial *DialError
		require.ErrorAs(t, err, &dial)
		assert.True(t, dial.Timeout)
		assert.Equal(t, Progress{}, p)
		assert.Equal(t, 2*time.Second, time.Since(started))

		r = job("up:1", "{}")
		r.Deadline = time.Now().Add(time.Second / 2)
		_, _, err = c.Do(context.Background(), r)
		require.ErrorIs(t, err, ErrDeadline)

		reason := errors.New("the submitter went away")
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(time.Second/2, func() { cancel(reason) })
		_, _, err = c.Do(ctx, job("up:1", "{}"))
		require.ErrorIs(t, err, reason)
		_, _, err = c.Do(ctx, job("up:1", "{}"))
		require.ErrorIs(t, err, reason, "from the start")
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_ = l.Close()
	c := newClient(t, Config{})
	_, p, err := c.Do(context.Background(), job(l.Addr().String(), "{}"))
	var dial *DialError
	require.ErrorAs(t, err, &dial)
	assert.False(t, dial.Timeout)
	assert.ErrorContains(t, err, "connection refused")
	assert.Equal(t, Progress{}, p)
}

func TestConfigs(t *testing.T) {
	for _, cfg := range []Config{
		{}, {Idle: 1, IdleTimeout: 1}, {Idle: 1, MaxHead: 1}, {IdleTimeout: 1, MaxHead: 1}, {Idle: -1, IdleTimeout: 1, MaxHead: 1},
	} {
		_, err := New(cfg)
		assert.Error(t, err)
	}
}

// What was forgotten in a sweep comes back as needed.
func TestUpstreamsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Config{IdleTimeout: time.Second, Dial: network(func(p *peer) {
			for r, _ := p.request(); r != nil; r, _ = p.request() {
				p.say(ok)
			}
		})})
		do(t, c, job("up:1", "{}"))
		res, _, err := c.Do(context.Background(), job("up:1", "{}"))
		require.NoError(t, err)
		do(t, c, job("up:2", "{}"))
		time.Sleep(3 * time.Second)
		c.pool.mu.Lock()
		assert.Empty(t, c.pool.upstreams)
		assert.Nil(t, c.pool.sweeper)
		c.pool.mu.Unlock()
		_, err = res.all()
		require.NoError(t, err)
		assert.Equal(t, 1, c.Idle()["up:1"])
	})
}

// On a TLS connection the client sees no more than that something has come, which on
// an idle one is its end.
func TestIdleTLSConnectionsAreLookedAt(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	defer server.Close()
	up := server.Listener.Addr().String()
	trusting := &tls.Dialer{Config: server.Client().Transport.(*http.Transport).TLSClientConfig}
	c := newClient(t, Config{Dial: trusting.DialContext})
	for i := range 3 {
		status, text, p := do(t, c, job(up, "{}"))
		assert.Equal(t, 200, status)
		assert.Equal(t, "ok", text)
		assert.Equal(t, i > 0, p.Reused)
	}
	server.CloseClientConnections()
	require.Eventually(t, func() bool {
		c.pool.mu.Lock()
		defer c.pool.mu.Unlock()
		return c.pool.upstreams[up].idle[0].More()
	}, patience, time.Millisecond)
	_, text, p := do(t, c, job(up, "{}"))
	assert.Equal(t, "ok", text)
	assert.False(t, p.Reused, "the connection that ended is not used")
}
