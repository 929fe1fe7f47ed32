package upstreamclient

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The deadline bounds the writing, too, and so does a submitter that leaves. Nothing was sent: the
// request may be sent elsewhere.
func TestAnUpstreamThatReadsNothing(t *testing.T) {
	for _, size := range []int{2, 2 * inline} {
		for submitter, want := range map[time.Duration]error{time.Hour: ErrDeadline, time.Second: context.DeadlineExceeded} {
			synctest.Test(t, func(t *testing.T) {
				end := make(chan struct{})
				defer close(end)
				c := newClient(t, Config{Dial: network(func(*peer) { <-end })})
				started := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), submitter)
				defer cancel()
				_, p, err := c.Do(ctx, job("up:1", strings.Repeat("x", size)))
				require.ErrorIs(t, err, want)
				assert.Equal(t, min(submitter, patience), time.Since(started))
				assert.Equal(t, Progress{}, p, size)
			})
		}
	}
}

// A byte of a request may be all that an upstream needs to begin something.
func TestAnUpstreamThatReadsAByte(t *testing.T) {
	for _, size := range []int{2, 2 * inline} {
		c := newClient(t, Config{Dial: network(func(p *peer) { _, _ = p.Read(make([]byte, 1)) })})
		_, p, err := c.Do(t.Context(), job("up:1", strings.Repeat("x", size)))
		require.Error(t, err)
		assert.Equal(t, Progress{Begun: true}, p, size)
	}
}

// lateWrites is a connection whose writes return long after the other side has read.
type lateWrites struct {
	net.Conn
	until chan struct{}
}

func (c lateWrites) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	<-c.until
	return n, err
}

// What an upstream may have got was sent, also while the write has not returned: the upstream
// may have begun the job before its connection ended.
func TestWhatMayHaveArrivedWasSent(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	dial := network(func(p *peer) { _, _ = p.in.ReadString('\n') })
	c := newClient(t, Config{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := dial(ctx, network, address)
		return lateWrites{nc, end}, err
	}})
	r := job("up:1", "")
	r.Body, r.Length = io.NopCloser(strings.NewReader("{}")), 2
	_, p, err := c.Do(t.Context(), r)
	require.ErrorIs(t, err, io.EOF)
	assert.Equal(t, Progress{Begun: true}, p)
}

// The caller may use a Request for something else as soon as Do has returned.
func TestARequestIsUsedAgainWhileItsBodyComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := closing(t, func(p *peer) {
			p.say("HTTP/1.1 200 OK\r\n\r\n")
			_, _ = io.CopyN(p, p.in, int64(len("2\r\nab\r\n0\r\nX-Sum: 1\r\n\r\n")))
			_ = p.Close()
		})
		more := make(chan struct{})
		r := job("up:1", "")
		r.Body, r.Length = io.NopCloser(io.MultiReader(until(more), strings.NewReader("ab"))), -1
		r.Trailer = http.Header{"X-Sum": {"1"}}
		res, _, err := c.Do(t.Context(), r)
		require.NoError(t, err)
		*r = Request{}
		close(more)
		text, err := res.all()
		require.NoError(t, err)
		assert.Equal(t, "2\r\nab\r\n0\r\nX-Sum: 1\r\n\r\n", text)
	})
}

// Trailers come with the end of the body. Where they cannot be sent, the upstream would wait for
// the end of the body, and the submitter for its answer.
func TestTrailersThatCannotBeSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, closed := closing(t, func(p *peer) { p.gone() })
		trailer := http.Header{"X-Sum": nil}
		r := job("up:1", "")
		r.Length, r.Trailer = -1, trailer
		r.Body = io.NopCloser(readerFunc(func([]byte) (int, error) {
			trailer["X Y"] = []string{"1"} // as net/http's server does
			return 0, io.EOF
		}))
		started := time.Now()
		_, p, err := c.Do(t.Context(), r)
		var failed *BodyError
		require.ErrorAs(t, err, &failed)
		require.ErrorIs(t, err, ErrRequest)
		assert.Equal(t, started, time.Now())
		assert.False(t, p.InFull)
		synctest.Wait()
		assert.True(t, *closed)
	})
}

// No more of a body is passed on than its length, and nothing after what could not be written.
func TestPiecesOfABody(t *testing.T) {
	full := errors.New("no more is taken")
	for body, want := range map[string]struct {
		length int64
		passed string
		err    error
	}{
		"abcd":  {4, "ab cd ", nil},
		"abcde": {4, "ab cd ", nil},
		"ab":    {-1, "ab ", nil},
		"abFG":  {-1, "ab ", full},
	} {
		near, _ := net.Pipe()
		s, passed := sending{conn: newConn(near)}, ""
		err := s.readBody(&Request{Body: io.NopCloser(strings.NewReader(body)), Length: want.length}, make([]byte, 2), func(p []byte) error {
			if string(p) == "FG" {
				return full
			}
			passed += string(p) + " "
			return nil
		})
		if body == "abcde" {
			assert.ErrorAs(t, err, new(*BodyError))
		} else {
			assert.Equal(t, want.err, err, body)
		}
		assert.Equal(t, want.passed, passed, body)
		_ = near.Close()
	}
}

// brokenOnce is a connection that fails to write once.
type brokenOnce struct {
	net.Conn
	writes int
}

var errBroken = errors.New("broken")

func (c *brokenOnce) Write(p []byte) (int, error) {
	if c.writes++; c.writes == 1 {
		return len(p) / 2, errBroken
	}
	return len(p), nil
}

// After half a head, no body is sent: the upstream would take it for the rest of the head.
func TestAHeadThatCannotBeSent(t *testing.T) {
	near, _ := net.Pipe()
	broken := &brokenOnce{Conn: near}
	s := sending{conn: newConn(broken), ended: make(chan struct{})}
	s.rest(&Request{Whole: []byte("body")}, new([2 * inline]byte), []byte("head"))
	require.ErrorIs(t, s.err, errBroken)
	assert.Equal(t, 1, broken.writes)
	assert.True(t, s.over())
}

// The last of the sending and the answer to end cares for the connection, whichever that is.
func TestTheLastToEnd(t *testing.T) {
	near, _ := net.Pipe()
	for _, sentFirst := range []bool{true, false} {
		s, times := sending{conn: newConn(&brokenOnce{Conn: near}), ended: make(chan struct{})}, 0
		sent := func() { s.rest(new(Request), new([2 * inline]byte), nil) }
		answered := func() { s.finish(func() { times++ }) }
		if sentFirst {
			sent()
			assert.Zero(t, times)
			answered()
		} else {
			answered()
			assert.Zero(t, times)
			sent()
		}
		assert.Equal(t, 1, times)
	}
}

// recorder is a connection that takes all that is written, also after an interruption: the end of
// the wait for a head takes that back.
type recorder struct {
	net.Conn
	taken strings.Builder
}

func (r *recorder) Write(p []byte) (int, error) { return r.taken.Write(p) }
func (r *recorder) SetDeadline(time.Time) error { return nil }

// A chunked body that fails gets no end: the upstream would take it for the whole.
func TestAChunkedBodyThatFailsHasNoEnd(t *testing.T) {
	near, _ := net.Pipe()
	upstream := &recorder{Conn: near}
	s := sending{conn: newConn(upstream)}
	err := s.sendBody(&Request{Body: io.NopCloser(failing{strings.NewReader("ab"), errBroken}), Length: -1}, make([]byte, 8))
	require.ErrorIs(t, err, errBroken)
	assert.Equal(t, "2\r\nab\r\n", upstream.taken.String())
}
