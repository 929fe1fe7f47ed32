package upstreamclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInterimAnswersArePassedOn(t *testing.T) {
	up := listen(t, func(p *peer) {
		p.request()
		p.say("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + ok)
	})
	c := newClient(t, Config{})
	r := job(up, "{}")
	var got []int
	r.Interim = interimFunc(func(status int, h http.Header) {
		got = append(got, status)
		if status == 103 {
			assert.Equal(t, http.Header{"Link": {"</a>"}}, h)
		}
	})
	status, text, _ := do(t, c, r)
	assert.Equal(t, 200, status)
	assert.Equal(t, "ok", text)
	assert.Equal(t, []int{103, 102}, got)
}

// A 1xx is no byte of the answer: the job may go to another upstream when this one dies
// after it. But a connection that brought one was not stale.
func TestAnInterimAnswerIsNotTheAnswer(t *testing.T) {
	for _, c := range []struct {
		rest     string
		answered bool
	}{{"", false}, {"H", true}} {
		up := listen(t, func(p *peer) {
			p.request()
			p.say("HTTP/1.1 102 Processing\r\n\r\n%s", c.rest)
		})
		_, p, err := newClient(t, Config{}).Do(context.Background(), job(up, "{}"))
		require.Error(t, err)
		assert.Equal(t, Progress{Begun: true, InFull: true, Interim: true, Answered: c.answered}, p)
		p.Reused = true
		assert.False(t, p.Stale())
	}
}

func TestHeadsAreBounded(t *testing.T) {
	line := "X: " + strings.Repeat("x", 1000) + "\r\n"
	for name, answer := range map[string]string{
		"a head":              "HTTP/1.1 200 OK\r\n" + strings.Repeat(line, 1000) + "\r\n",
		"one line":            "HTTP/1.1 200 " + strings.Repeat("x", 1<<20),
		"an interim head":     "HTTP/1.1 103 Hints\r\n" + strings.Repeat(line, 1000) + "\r\n" + ok,
		"interims, no end":    strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 1000) + ok,
		"a head without end":  "HTTP/1.1 200 OK\r\n",
		"an answer below 100": "HTTP/1.1 099 No\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			up := listen(t, func(p *peer) {
				p.request()
				p.say("%s", answer)
			})
			c := newClient(t, Config{MaxHead: 64 << 10})
			_, p, err := c.Do(context.Background(), job(up, "{}"))
			require.Error(t, err)
			assert.True(t, p.Answered)
			assert.Zero(t, c.Idle()[up])
		})
	}
	up := listen(t, func(p *peer) {
		p.request()
		p.say("HTTP/1.1 200 OK\r\n%s\r\n", strings.Repeat(line, 60)+"Content-Length: 1048576\r\n")
		p.say("%s", strings.Repeat("x", 1<<20))
	})
	_, text, _ := do(t, newClient(t, Config{MaxHead: 64 << 10}), job(up, "{}"))
	assert.Len(t, text, 1<<20, "the bound is on the head alone")
}

// Ready tells whether the first Read brings something without a wait.
func TestReady(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\n"
	for _, tc := range []struct {
		now, later string
		ready      bool
	}{
		{head + "Content-Length: 2\r\n\r\nok", "", true},
		{head + "Content-Length: 2\r\n\r\no", "k", true},
		{head + "Content-Length: 0\r\n\r\n", "", true},
		{head + "Content-Length: 2\r\n\r\n", "ok", false},
		{head + "\r\nok", "", true},
		{head + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "", true},
		{head + "Transfer-Encoding: chunked\r\n\r\n2\r\no", "k\r\n0\r\n\r\n", false},
		{head + "Transfer-Encoding: chunked\r\n\r\n2;ext\r\nok", "\r\n0\r\n\r\n", true},
		{head + "Transfer-Encoding: chunked\r\n\r\n1\r\no\r\n", "0\r\n\r\n", true},
		{head + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n2", "\r\nok\r\n0\r\n\r\n", true},
		{head + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n2\r\n", "ok\r\n0\r\n\r\n", false},
		{head + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n2\r\no", "k\r\n0\r\n\r\n", false},
		{head + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n", "\r\n", false},
		{head + "Transfer-Encoding: chunked\r\n\r\n2\r\n", "ok\r\n0\r\n\r\n", false},
		{head + "Transfer-Encoding: chunked\r\n\r\n2", "\r\nok\r\n0\r\n\r\n", false},
		{head + "Transfer-Encoding: chunked\r\n\r\n", "2\r\nok\r\n0\r\n\r\n", false},
		{head + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", true},
		{head + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: 1\r\n\r\n", "", true},
		{head + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: 1", "\r\n\r\n", false},
		{head + "Transfer-Encoding: chunked\r\n\r\n0\r\n", "\r\n", false},
	} {
		t.Run(tc.now, func(t *testing.T) {
			looked := make(chan struct{})
			up := listen(t, func(p *peer) {
				p.request()
				p.say("%s", tc.now)
				<-looked
				p.say("%s", tc.later)
			})
			c := newClient(t, Config{})
			res, _, err := c.Do(context.Background(), job(up, "{}"))
			require.NoError(t, err)
			assert.Equal(t, tc.ready, res.Ready())
			if tc.ready { // no Read waits for what is said later
				_, err = res.Read(make([]byte, 100), time.Now().Add(patience))
				assert.True(t, err == nil || errors.Is(err, io.EOF), err)
			}
			close(looked)
			_, err = res.all()
			require.NoError(t, err)
		})
	}
}

func TestTimesOfAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Config{Dial: network(func(p *peer) {
			r, _ := p.request()
			if r.Header.Get("Silent") == "" {
				p.say("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")
			}
			p.gone()
		})})
		started := time.Now()
		r := job("up:1", "{}")
		r.Header, r.Deadline = http.Header{"Silent": {"1"}}, started.Add(3*time.Second)
		_, p, err := c.Do(context.Background(), r)
		require.ErrorIs(t, err, ErrDeadline)
		assert.Equal(t, Progress{Begun: true, InFull: true}, p)
		assert.Equal(t, 3*time.Second, time.Since(started))

		r = job("up:1", "{}")
		r.Deadline = time.Now().Add(time.Second)
		res, _, err := c.Do(context.Background(), r)
		require.NoError(t, err)
		piece := make([]byte, 100)
		n, err := res.Read(piece, time.Now().Add(time.Hour))
		require.NoError(t, err)
		assert.Equal(t, "half", string(piece[:n]))
		started = time.Now()
		_, err = res.Read(piece, time.Now().Add(time.Hour))
		require.ErrorIs(t, err, ErrSilent)
		assert.Equal(t, time.Hour, time.Since(started), "the deadline of the head does not cut the body")
		res.Close()
		assert.Zero(t, c.Idle()["up:1"])
	})
}

// A submitter that leaves ends the exchange, whatever it waits for, and the
// upstream is told.
func TestCancellation(t *testing.T) {
	reason := errors.New("the submitter went away")
	body := strings.Repeat("x", 64<<20)
	for name, tc := range map[string]struct {
		script func(*peer)
		body   string
	}{
		"the head":    {func(p *peer) { p.request() }, "{}"},
		"the body":    {func(p *peer) { p.request(); p.say("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf") }, "{}"},
		"the sending": {func(p *peer) { _, _ = p.in.ReadString('\n') }, body},
		"the body while sending": {func(p *peer) {
			_, _ = p.in.ReadString('\n')
			p.say("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")
		}, body},
	} {
		t.Run(name, func(t *testing.T) {
			reached, told := make(chan struct{}), make(chan struct{})
			up := listen(t, func(p *peer) {
				tc.script(p)
				close(reached)
				p.gone()
				close(told)
			})
			c := newClient(t, Config{})
			ctx, cancel := context.WithCancelCause(context.Background())
			go func() {
				<-reached
				cancel(reason)
			}()
			res, _, err := c.Do(ctx, job(up, tc.body))
			if err == nil {
				_, err = res.all()
			}
			require.ErrorIs(t, err, reason)
			<-told
			assert.Zero(t, c.Idle()[up])
		})
	}
}

// A cancellation that comes as the answer ends must not hurt the next request.
func TestCancellationAtTheEnd(t *testing.T) {
	up := listen(t, func(p *peer) {
		for r, _ := p.request(); r != nil; r, _ = p.request() {
			p.say(ok)
		}
	})
	c := newClient(t, Config{})
	for range 500 {
		ctx, cancel := context.WithCancel(context.Background())
		res, _, err := c.Do(ctx, job(up, "{}"))
		require.NoError(t, err)
		go cancel()
		piece := make([]byte, 10)
		_, err = res.Read(piece, time.Now().Add(patience))
		if err != nil && !errors.Is(err, io.EOF) {
			require.ErrorIs(t, err, context.Canceled)
		}
		res.Close()
		status, _, _ := do(t, c, job(up, "{}"))
		assert.Equal(t, 200, status)
		<-ctx.Done()
	}
}
