package upstreamclient

import (
	"context"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A request can be withdrawn until the first byte of its answer. A pipe passes a byte on only
// when it is read.
func TestWithdrawal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		came, rest := make(chan struct{}), make(chan struct{})
		c := newClient(t, Config{Dial: network(func(p *peer) {
			for r, _ := p.request(); r != nil; r, _ = p.request() {
				switch r.URL.Path {
				case "/silent":
					came <- struct{}{}
					p.gone()
					return
				case "/slow":
					p.say("HTTP/1.1 200 ")
					came <- struct{}{}
					<-rest
					p.say("OK\r\nContent-Length: 2\r\n\r\nok")
				default:
					p.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				}
			}
		})})
		var w Withdrawal
		started := time.Now()
		send := func(target string) (*Response, Progress, error) {
			r := job("up:1", "{}")
			r.Target, r.Withdrawal = target, &w
			return c.Do(t.Context(), r)
		}

		go func() {
			<-came
			assert.True(t, w.Withdraw())
		}()
		_, p, err := send("/silent")
		require.ErrorIs(t, err, ErrWithdrawn)
		assert.Equal(t, Progress{Begun: true, InFull: true}, p)
		assert.True(t, w.Withdraw(), "nothing of an answer has come")
		_, p, err = send("/")
		require.ErrorIs(t, err, ErrWithdrawn, "until it is reset")
		assert.False(t, p.Begun)

		w.Reset()
		response, p, err := send("/")
		require.NoError(t, err)
		assert.True(t, p.Reused, "a connection that was not used is pooled")
		assert.False(t, w.Withdraw(), "it is too late")
		text, err := response.all()
		require.NoError(t, err)
		assert.Equal(t, "ok", text)

		w.Reset()
		assert.True(t, w.Withdraw(), "before the next request has a connection")
		_, p, err = send("/")
		require.ErrorIs(t, err, ErrWithdrawn)
		assert.False(t, p.Begun)

		w.Reset()
		go func() {
			<-came
			w.Withdraw()
			close(rest)
		}()
		response, _, err = send("/slow")
		require.NoError(t, err, "the answer has begun")
		text, err = response.all()
		require.NoError(t, err)
		assert.Equal(t, "ok", text)
		assert.Equal(t, started, time.Now(), "a withdrawal is not waited for")
	})
}

// A withdrawal interrupts no connection on which its own request does not wait: another request
// may have it.
func TestAWithdrawalLeavesOthersAlone(t *testing.T) {
	for name, withdrawn := range map[string]bool{"the request was answered": false, "it was withdrawn before it had a connection": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conns := 0
				c := newClient(t, Config{Dial: network(func(p *peer) {
					conns++
					for r, _ := p.request(); r != nil; r, _ = p.request() {
						time.Sleep(time.Second)
						p.say(ok)
					}
				})})
				do(t, c, job("up:1", "{}")) // its connection is pooled
				var w Withdrawal
				if withdrawn {
					w.Withdraw()
				}
				r := job("up:1", "{}")
				r.Withdrawal = &w
				response, _, err := c.Do(t.Context(), r)
				if withdrawn {
					require.ErrorIs(t, err, ErrWithdrawn)
				} else {
					require.NoError(t, err)
					_, err = response.all()
					require.NoError(t, err)
				}
				time.AfterFunc(time.Second/2, func() {
					w.Reset()
					w.Withdraw()
				})
				do(t, c, job("up:1", "{}"))
				assert.Equal(t, 1, conns)
			})
		})
	}
}

// A withdrawal may interrupt a connection just as the answer begins. The answer is read to its
// end, but not if the submitter has left, and not beyond the deadline.
func TestAWithdrawalAtTheFirstByte(t *testing.T) {
	const rest = "TTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	for name, tc := range map[string]struct {
		rest string
		left bool
		err  error
	}{
		"the answer comes":       {rest, false, nil},
		"the submitter has left": {rest, true, context.Canceled},
		"the rest does not come": {"TTP/1.1 200 OK\r\n", false, os.ErrDeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			written := make(chan struct{})
			go func() {
				defer close(written)
				for _, piece := range []string{"H", tc.rest} {
					_, _ = io.WriteString(far, piece)
				}
			}()
			cn, r, p := newConn(near), job("up:1", "{}"), Progress{}
			r.Withdrawal = new(Withdrawal)
			require.True(t, r.Withdrawal.enter(cn))
			waited := cn.Await()
			require.True(t, r.Withdrawal.Withdraw())
			ctx, leave := context.WithCancel(t.Context())
			if tc.left {
				leave()
			}
			response, err := cn.head(ctx, r, waited, 1<<10, &p)
			require.ErrorIs(t, err, tc.err, name)
			if err == nil {
				require.NoError(t, response.Body.Close())
				assert.Equal(t, 200, response.StatusCode)
			}
			leave()
			_ = near.Close()
			<-written
		})
	}
}

// A withdrawal may come at any time: the request is withdrawn, or answered whole, and the next
// one is not hurt.
func TestAWithdrawalAtAnyTime(t *testing.T) {
	up := listen(t, func(p *peer) {
		for r, _ := p.request(); r != nil; r, _ = p.request() {
			p.say(ok)
		}
	})
	c := newClient(t, Config{})
	var w Withdrawal
	for range 300 {
		told := make(chan bool, 1)
		go func() { told <- w.Withdraw() }()
		r := job(up, "{}")
		r.Withdrawal = &w
		res, _, err := c.Do(t.Context(), r)
		if err == nil {
			text, failed := res.all()
			require.NoError(t, failed)
			assert.Equal(t, "ok", text)
		} else {
			require.ErrorIs(t, err, ErrWithdrawn)
		}
		if !<-told {
			require.NoError(t, err, "it came too late")
		}
		w.Reset()
		status, _, _ := do(t, c, job(up, "{}"))
		assert.Equal(t, 200, status)
	}
}
