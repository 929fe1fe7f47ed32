package upstreamclient

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/peer"
)

// gate is a network that delays dials until the test lets them through.
type gate struct {
	dialing, most atomic.Int32
	t             testing.TB
	through       chan error
	script        func(*peer.Peer)
}

func (g *gate) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	n := g.dialing.Add(1)
	for most := g.most.Load(); n > most && !g.most.CompareAndSwap(most, n); most = g.most.Load() {
	}
	defer g.dialing.Add(-1)
	select {
	case err := <-g.through:
		if err != nil {
			return nil, err
		}
		return network(g.t, g.script)(ctx, "", "")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// newGate returns a client behind a gate. The upstream responds to each request after a pause.
func newGate(t *testing.T, pause time.Duration) (*gate, *Client) {
	g := &gate{t: t, through: make(chan error, 2), script: func(p *peer.Peer) {
		for r := p.Request(); r != nil; r = p.Request() {
			time.Sleep(pause)
			p.Say(ok)
		}
	}}
	return g, newClient(t, Config{Dial: g.dial, Idle: 4})
}

// brief is a request with a connect timeout of one second.
func brief() (r *Request) {
	defer func() { r.ConnectTimeout = time.Second }()
	return job("up:1", "{}")
}

// send sends n requests at once and reports the error of each.
func send(c *Client, n int) <-chan error {
	ended := make(chan error, n)
	for range n {
		go func() {
			res, _, err := c.Do(context.Background(), brief())
			if err == nil {
				_, err = res.all()
			}
			ended <- err
		}()
	}
	return ended
}

// A burst waits for the limited number of concurrent dials, and for connections that other requests return. If an upstream
// accepts no further connection, its accept queue is full, and requests wait for their turn, however long that takes.
func TestBurstsWaitForConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := newGate(t, 50*time.Millisecond)
		const jobs = 200
		started, ended := time.Now(), send(c, jobs)
		synctest.Wait()
		assert.EqualValues(t, maxDials, g.most.Load())
		g.through <- nil
		for range jobs {
			require.NoError(t, <-ended)
		}
		assert.Equal(t, 10*time.Second, time.Since(started), "one after the other, on one connection")
		assert.Equal(t, 1, pooled(c, "up:1"), "the other dials timed out, for nobody")
	})
}

// If an upstream accepts no connection, each request fails after exactly its own connect timeout, also a request that arrives
// during the dial of another one.
func TestADeadUpstreamFailsAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := newGate(t, 0)
		var jobs sync.WaitGroup
		for i := range 200 {
			jobs.Go(func() {
				started := time.Now()
				_, _, err := c.Do(t.Context(), brief())
				var dial *DialError
				if assert.ErrorAs(t, err, &dial) {
					assert.True(t, dial.Timeout)
				}
				assert.Equal(t, time.Second, time.Since(started))
			})
			if i%50 == 49 {
				time.Sleep(time.Second / 4)
			}
		}
		jobs.Wait()
		time.Sleep(2 * time.Second)
	})
}

// A request with Fresh does not get a connection that another request returns.
func TestAFreshRequestWaitsForItsOwnConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := newGate(t, 100*time.Millisecond)
		g.through <- nil
		var jobs sync.WaitGroup
		jobs.Go(func() { do(t, c, brief()) })
		synctest.Wait()
		jobs.Go(func() {
			r := brief()
			r.Fresh = true
			_, _, p := do(t, c, r)
			assert.False(t, p.Reused)
		})
		time.Sleep(500 * time.Millisecond)
		assert.Equal(t, 1, pooled(c, "up:1"), "the first is pooled")
		g.through <- nil
		jobs.Wait()
	})
}

// The end of a request ends its dial. A connection that is established nevertheless goes to the pool.
func TestALeavingRequestEndsItsDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := newGate(t, 0)
		reason := errors.New("the submitter went away")
		ctx, cancel := context.WithCancelCause(context.Background())
		left := make(chan error, 2)
		r := brief()
		for _, deadline := range []time.Time{r.Deadline, time.Now().Add(time.Second / 2)} {
			r := *r
			r.Deadline = deadline
			go func() {
				_, _, err := c.Do(ctx, &r)
				left <- err
			}()
		}
		synctest.Wait()
		require.ErrorIs(t, <-left, ErrDeadline)
		cancel(reason)
		require.ErrorIs(t, <-left, reason)
		synctest.Wait()
		assert.Zero(t, g.dialing.Load())

		here, _ := net.Pipe()
		c.cfg.Dial = func(context.Context, string, string) (net.Conn, error) {
			<-g.through
			return here, nil // although the request has ended
		}
		r.Deadline = time.Now().Add(time.Second / 2)
		_, _, err := c.Do(t.Context(), r)
		require.ErrorIs(t, err, ErrDeadline)
		g.through <- nil
		synctest.Wait()
		assert.Equal(t, 1, pooled(c, "up:1"))
	})
}

// Close waits for the dials that started before it, and for no others.
func TestCloseWaitsForTheDialsBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := newGate(t, 0)
		started, first, closed := time.Now(), send(c, 1), make(chan struct{})
		synctest.Wait()
		go func() {
			c.Close()
			close(closed)
		}()
		synctest.Wait()
		second := send(c, 1)
		synctest.Wait()
		g.through <- nil
		require.NoError(t, <-first)
		<-closed
		assert.Equal(t, started, time.Now())
		require.Error(t, <-second)
	})
}
