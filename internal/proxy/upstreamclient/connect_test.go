package upstreamclient

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/proxy/lazyconn"
)

// A closed client dials no more, and nothing of it is left.
func TestCloseEndsDials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{through: make(chan error)}
		c := newClient(t, Config{Dial: g.dial})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second/2)
		defer cancel()
		_, _, err := c.Do(ctx, job("up:1", "{}"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualValues(t, 1, g.dialing.Load())
		started := time.Now()
		c.Close()
		assert.Zero(t, g.dialing.Load())
		assert.Equal(t, started, time.Now())
		r := job("up:1", "{}")
		r.Deadline = time.Now().Add(time.Second)
		_, _, err = c.Do(t.Context(), r)
		require.ErrorIs(t, err, ErrDeadline, "it waits for a connection that nobody makes")
	})
}

// A connection that is of no use from the start is the upstream's fault, and costs one dial.
func TestANewConnectionThatIsClosed(t *testing.T) {
	c := newClient(t, Config{Dial: func(context.Context, string, string) (net.Conn, error) {
		near, _ := net.Pipe()
		return near, near.Close()
	}})
	_, _, err := c.Do(t.Context(), job("up:1", "{}"))
	var dial *DialError
	require.ErrorAs(t, err, &dial)
	assert.False(t, dial.Timeout)
}

// An upstream may answer before it is asked, to refuse: that is an answer, also to a large request.
func TestAnAnswerToAConnection(t *testing.T) {
	up := listen(t, func(p *peer) {
		p.say("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\nno")
		p.gone()
	})
	c := newClient(t, Config{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			lazyconn.New(nc, buffers).WaitForEnd() // or the answer
		}
		return nc, err
	}})
	for _, body := range []string{"{}", strings.Repeat(" ", 2*inline)} {
		r := job(up, body)
		r.Fresh = true
		status, text, _ := do(t, c, r)
		assert.Equal(t, 503, status)
		assert.Equal(t, "no", text)
	}
}

// The connection that was used last is used first: those that are not needed become old.
func TestTheLastConnectionIsUsedFirst(t *testing.T) {
	up := listen(t, func(p *peer) {
		for r, _ := p.request(); r != nil; r, _ = p.request() {
			p.say("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d", p.n)
		}
	})
	c := newClient(t, Config{})
	var open []*Response
	for range 3 {
		res, _, err := c.Do(t.Context(), job(up, "{}"))
		require.NoError(t, err)
		open = append(open, res)
	}
	last := ""
	for _, i := range []int{0, 2, 1} {
		text, err := open[i].all()
		require.NoError(t, err)
		last = text
	}
	for range 2 {
		_, text, _ := do(t, c, job(up, "{}"))
		assert.Equal(t, last, text)
		c.pool.sweep()
	}
}
