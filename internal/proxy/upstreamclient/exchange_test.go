package upstreamclient

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hooks is a context that counts who waits for its end.
type hooks struct {
	context.Context
	n       int
	running bool // what was to be done is being done
}

func (h *hooks) AfterFunc(func()) (stop func() bool) {
	h.n++
	return func() bool {
		h.n--
		return !h.running
	}
}

// A submitter's connection outlives many exchanges: none stays hooked to it, however it ended.
func TestNothingIsLeftInTheContext(t *testing.T) {
	for name, change := range map[string]func(*Request){
		"answered":                       func(*Request) {},
		"cut short":                      func(r *Request) { r.Target = "/cut" },
		"not to be sent":                 func(r *Request) { r.Method = "" },
		"on a connection that has ended": func(r *Request) { r.Fresh = false },
	} {
		t.Run(name, func(t *testing.T) {
			up := listen(t, func(p *peer) {
				if r, _ := p.request(); r != nil && r.URL.Path != "/cut" {
					p.say(ok)
				}
			})
			c := newClient(t, Config{})
			do(t, c, job(up, "{}"))
			require.Eventually(t, c.pool.at(up).idle[0].More, patience, time.Millisecond, "its end has come")
			ctx := &hooks{Context: t.Context()}
			r := job(up, "{}")
			r.Fresh = true
			change(r)
			if res, _, err := c.Do(ctx, r); err == nil {
				assert.Equal(t, 1, ctx.n)
				_, err = res.all()
				require.NoError(t, err)
			}
			assert.Zero(t, ctx.n)
		})
	}
}

// A submitter that leaves as its answer ends may interrupt the connection a little later: another
// request must not have it then.
func TestAnInterruptionThatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, closed := closing(t, func(p *peer) { p.say(ok) })
		res, _, err := c.Do(&hooks{Context: t.Context(), running: true}, job("up:1", ""))
		require.NoError(t, err)
		_, err = res.all()
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, []any{0, true}, []any{c.Idle()["up:1"], *closed})
	})
}

// The memory of a body is used for another job's as soon as Do has failed: no write may still
// be reading it.
func TestDoEndsAfterItsWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		written := make(chan struct{})
		dial := network(func(p *peer) { _, _ = p.in.ReadString('\n') })
		c := newClient(t, Config{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			nc, err := dial(ctx, network, address)
			return lateWrites{nc, written}, err
		}})
		returned := make(chan error, 1)
		go func() {
			_, _, err := c.Do(t.Context(), job("up:1", strings.Repeat("x", 2*inline)))
			returned <- err
		}()
		synctest.Wait()
		assert.Empty(t, returned)
		close(written)
		require.ErrorIs(t, <-returned, io.EOF)
	})
}

// Each Read waits for so long as it may, wherever the upstream falls silent.
func TestAnUpstreamThatFallsSilent(t *testing.T) {
	for _, answer := range []string{
		"\r\nhalf",
		"Content-Length: 8\r\n\r\nhalf",
		"Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n4",
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := closing(t, func(p *peer) {
				p.say("HTTP/1.1 200 OK\r\n%s", answer)
				p.gone()
			})
			r := job("up:1", "")
			r.Deadline = time.Now().Add(time.Second)
			res, _, err := c.Do(t.Context(), r)
			require.NoError(t, err)
			defer res.Close()
			piece := make([]byte, 100)
			n, err := res.Read(piece, time.Now().Add(time.Hour))
			require.NoError(t, err)
			assert.Equal(t, "half", string(piece[:n]))
			started := time.Now()
			_, err = res.Read(piece, started.Add(time.Hour))
			require.ErrorIs(t, err, ErrSilent, answer)
			assert.Equal(t, time.Hour, time.Since(started), answer)
		})
	}
}

// A head that stops in the middle of a line is late, not malformed.
func TestAHeadThatStops(t *testing.T) {
	for _, head := range []string{"H", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent", "HTTP/1.1 102 Processing\r\n\r\nHTTP"} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := closing(t, func(p *peer) {
				p.say("%s", head)
				p.gone()
			})
			_, p, err := c.Do(t.Context(), job("up:1", ""))
			require.ErrorIs(t, err, ErrDeadline, head)
			assert.True(t, p.Answered)
		})
	}
}

// Complete is told only of a body whose end is known, and there.
func TestComplete(t *testing.T) {
	for answer, want := range map[string]bool{
		"Content-Length: 0\r\n\r\n":   true,
		"Content-Length: 2\r\n\r\nok": true,
		"Content-Length: 2\r\n\r\no":  false,
		"\r\nok":                      false,
		"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n": false,
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := closing(t, func(p *peer) {
				p.say("HTTP/1.1 200 OK\r\n%s", answer)
				p.gone()
			})
			res, _, err := c.Do(t.Context(), job("up:1", ""))
			require.NoError(t, err)
			assert.Equal(t, want, res.Complete(), answer)
			res.Close()
		})
	}
}

// A connection that has ended is not pooled, though the answer came whole.
func TestAConnectionThatEndedMeanwhile(t *testing.T) {
	up := listen(t, func(p *peer) {
		p.request()
		p.say(ok)
	})
	c := newClient(t, Config{})
	res, _, err := c.Do(t.Context(), job(up, "{}"))
	require.NoError(t, err)
	_, err = res.Read(make([]byte, 10), time.Now().Add(patience))
	require.ErrorIs(t, err, io.EOF)
	require.Eventually(t, res.conn.More, patience, time.Millisecond)
	res.Close()
	assert.Zero(t, c.Idle()[up])
}

// A body that was sent is closed, too.
func TestABodyIsClosedAfterTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Config{Dial: network(func(p *peer) {
			for r, _ := p.request(); r != nil; r, _ = p.request() {
				p.say(ok)
			}
		})})
		body := &waitingBody{fails: make(chan error)}
		close(body.fails)
		r := job("up:1", "")
		r.Body = body
		do(t, c, r)
		synctest.Wait()
		assert.True(t, body.closed)
	})
}

// Only a pooled connection can be stale, and only where nothing came.
func TestStale(t *testing.T) {
	for p, want := range map[Progress]bool{
		{}:                             false,
		{Begun: true, InFull: true}:    false,
		{Reused: true}:                 true,
		{Reused: true, Begun: true}:    true,
		{Reused: true, Interim: true}:  false,
		{Reused: true, Answered: true}: false,
		{Begun: true, InFull: true, Answered: true}: false,
	} {
		assert.Equal(t, want, p.Stale(), "%+v", p)
	}
}
