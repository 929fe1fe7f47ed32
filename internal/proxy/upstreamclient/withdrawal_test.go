package upstreamclient

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/peer"
)

// A request can be withdrawn until the first byte of its response. On a pipe, a write returns only
// when the bytes are read.
func TestWithdrawal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		came, rest := make(chan struct{}), make(chan struct{})
		c := newClient(t, Config{Dial: network(t, func(p *peer.Peer) {
			for r := p.Request(); r != nil; r = p.Request() {
				switch r.URL.Path {
				case "/silent":
					came <- struct{}{}
					p.Gone()
					return
				case "/slow":
					p.Say("HTTP/1.1 200 ")
					came <- struct{}{}
					<-rest
					p.Say("OK\r\nContent-Length: 2\r\n\r\nok")
				default:
					p.Say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
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
