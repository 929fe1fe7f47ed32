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
)

// gate is a network where dials wait to be let through.
type gate struct {
	dialing, most atomic.Int32
	through       chan error
	script        func(*peer)
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
		return network(g.script)(ctx, "", "")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// newGate is a client behind a gate, and the upstream answers each request after a pause.
func newGate(t *testing.T, pause time.Duration) (*gate, *Client) {
	g := &gate{through: make(chan error, 2), script: func(p *peer) {
		for r, _ := p.request(); r != nil; r, _ = p.request() {
			time.Sleep(pause)
			p.say(ok)
		}
	}}
	return g, newClient(t, Config{Dial: g.dial, Idle: 4})
}

// brief is a request whose connection may take a second, of the bubble's time.
func brief() (r *Request) {
	defer func() { r.ConnectTimeout = time.Second }()
	return job("up:1", "{}")
}

// send sends so many requests at once, and tells how each ends.
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

// A burst waits for so few connections as may be made at one time, and for those that others give back. An upstream
// that takes no further connection has a full queue of them: requests wait for their turn, however long that takes.
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

// Where an upstream makes no connection for the connect timeout, nobody waits longer than that. A time-out fails
// nobody who came after the dial began: each waits for as long as it may.
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

// A request that asks for a new connection does not get one that another gives back.
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

// A request that leaves ends its dial. What was made all the same is pooled.
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
			return here, nil // whatever happened meanwhile
		}
		r.Deadline = time.Now().Add(time.Second / 2)
		_, _, err := c.Do(t.Context(), r)
		require.ErrorIs(t, err, ErrDeadline)
		g.through <- nil
		synctest.Wait()
		assert.Equal(t, 1, pooled(c, "up:1"))
	})
}

// Requests may be under way when the client is closed. Close waits for the dials before it, and for no others.
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

// An upstream that takes connections, however slowly, fails nobody by taking long. One that
// refuses a connection meanwhile fails one request.
func TestAnUpstreamThatTakesConnectionsSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := newGate(t, 5*time.Second)
		ended := send(c, 3)
		time.Sleep(500 * time.Millisecond)
		g.through <- nil
		synctest.Wait()
		refused := errors.New("connection refused")
		g.through <- refused
		require.ErrorIs(t, <-ended, refused)
		time.Sleep(time.Second) // the third dial has timed out
		g.through <- nil
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
	})
}
