package upstreamclient

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const half = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf"

// closing exchanges a request with an upstream that runs script once its head has come,
// and notes when the client has closed the connection.
func closing(t *testing.T, script func(*peer)) (c *Client, closed *bool) {
	closed = new(bool)
	return newClient(t, Config{Dial: network(func(p *peer) {
		for line := ""; line != "\r\n"; {
			var err error
			if line, err = p.in.ReadString('\n'); err != nil {
				return
			}
		}
		script(p)
		_, _ = p.Read(make([]byte, 1)) // a byte, or the end
		*closed = true
	})}), closed
}

// An answer that was not read to its end leaves nothing for the next request, also where the
// rest has not come yet.
func TestAnAnswerThatWasNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, closed := closing(t, func(p *peer) { p.say("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n") })
		r := job("up:1", "")
		r.Method = "GET"
		res, _, err := c.Do(t.Context(), r)
		require.NoError(t, err)
		res.Close()
		synctest.Wait()
		assert.Equal(t, []any{0, true}, []any{c.Idle()["up:1"], *closed})
	})
}

// An upstream may answer before it has read the request. It gets a moment for the rest; a
// connection with half a request is of no use.
func TestTheRestOfARequestAfterItsAnswer(t *testing.T) {
	for after, kept := range map[time.Duration]int{0: 1, lastWrite - 1: 1, lastWrite + 1: 0} {
		synctest.Test(t, func(t *testing.T) {
			c, closed := closing(t, func(p *peer) {
				p.say(ok)
				time.Sleep(after)
				_, _ = io.CopyN(io.Discard, p.in, 2*inline)
			})
			res, _, err := c.Do(t.Context(), job("up:1", strings.Repeat("x", 2*inline)))
			require.NoError(t, err)
			_, err = res.all()
			require.NoError(t, err)
			time.Sleep(time.Second)
			synctest.Wait()
			assert.Equal(t, []any{kept, kept == 0}, []any{c.Idle()["up:1"], *closed}, after)
			for _, cn := range c.pool.at("up:1").idle {
				assert.Nil(t, cn.In, "it needs no buffer while it is idle")
			}
		})
	}
}

// The deadline is that of the head: the rest of the request may take longer.
func TestARequestThatIsReadSlowlyAfterTheHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := closing(t, func(p *peer) {
			p.say(half)
			time.Sleep(time.Hour)
			_, _ = io.CopyN(io.Discard, p.in, 2*inline)
			p.say("half")
		})
		r := job("up:1", strings.Repeat("x", 2*inline))
		r.Deadline = time.Now().Add(time.Second)
		res, _, err := c.Do(t.Context(), r)
		require.NoError(t, err)
		text, err := "", error(nil)
		for piece := make([]byte, 8); err == nil; {
			n := 0
			n, err = res.Read(piece, time.Now().Add(2*time.Hour))
			text += string(piece[:n])
		}
		require.ErrorIs(t, err, io.EOF)
		assert.Equal(t, "halfhalf", text)
		res.Close()
		synctest.Wait() // the upstream has all of the request, but the sender may not know that yet
		assert.Equal(t, 1, c.Idle()["up:1"])
	})
}

// waitingBody is a body of which nothing comes until it fails or is closed.
type waitingBody struct {
	fails  chan error
	closed bool
}

func (b *waitingBody) Read([]byte) (int, error) {
	err, fails := <-b.fails
	if !fails {
		err = io.EOF
	}
	return 0, err
}

func (b *waitingBody) Close() error {
	b.closed = true
	return nil
}

// A body that still comes is read no more when its answer has come whole: the submitter's next
// request follows it.
func TestABodyThatStillComesAfterTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, closed := closing(t, func(p *peer) { p.say(ok) })
		body := &waitingBody{fails: make(chan error)}
		r := job("up:1", "")
		r.Body, r.Length = body, 8
		res, _, err := c.Do(t.Context(), r)
		require.NoError(t, err)
		_, err = res.all()
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, []bool{true, true}, []bool{body.closed, *closed})
		close(body.fails)
	})
}

// What ends an exchange ends its reads at once, also those that begin later.
func TestReadsAfterTheEnd(t *testing.T) {
	reason := errors.New("the submitter went away")
	for name, end := range map[string]func(leave context.CancelCauseFunc, body *waitingBody){
		"the submitter has left": func(leave context.CancelCauseFunc, _ *waitingBody) { leave(reason) },
		"the body has failed":    func(_ context.CancelCauseFunc, body *waitingBody) { body.fails <- reason },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := closing(t, func(p *peer) { p.say(half) })
				ctx, leave := context.WithCancelCause(t.Context())
				body := &waitingBody{fails: make(chan error, 1)}
				r := job("up:1", "")
				r.Body, r.Length = body, 8
				res, _, err := c.Do(ctx, r)
				require.NoError(t, err)
				started := time.Now()
				end(leave, body)
				synctest.Wait()
				for range 2 {
					_, err = res.Read(make([]byte, 8), time.Now().Add(time.Hour))
				}
				require.ErrorIs(t, err, reason)
				assert.Equal(t, started, time.Now())
				res.Close()
				leave(nil)
				close(body.fails)
			})
		})
	}
}
