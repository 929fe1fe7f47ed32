package submitterserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/proxy/lazyconn"
)

// handedOn starts a connection that is handed over. Without HTTP/2, net/http's server passes it to the handler as a request.
const handedOn = "PRI * HTTP/2.0\r\n\r\n"

// An interruption from before the hand-over has no effect on a handed connection.
func TestAConnectionThatIsHandedOnIsLeftAlone(t *testing.T) {
	s := serving(t, http.HandlerFunc(ok), nil)
	c := dial(t, s.address)
	inner := s.one(t)
	_, err := io.WriteString(c, handedOn[:16])
	require.NoError(t, err)
	require.Eventually(t, func() bool { return inner.locked(func() bool { return inner.state == starting }) }, patience, time.Millisecond)
	_, err = io.WriteString(c, handedOn[16:])
	require.NoError(t, err)
	soon(t, s.behind)
	inner.interruptIdle() // as a shutdown does that began before
	assert.Equal(t, "200 ok", answer(t, bufio.NewReader(c)))
}

// The memory of heads that are not complete is bounded.
func TestLongHeadsCount(t *testing.T) {
	budget := intake.NewBudget(2*longHead, 0)
	s := servingAs(t, Config{Handler: http.HandlerFunc(ok), IdleTimeout: time.Hour, ErrorLog: quiet(), Budget: budget}, nil)
	slow := "POST / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", maxHead)
	send := func(text string) *net.TCPConn {
		c := dial(t, s.address)
		_, err := io.WriteString(c, text)
		require.NoError(t, err)
		return c
	}
	first, second := send(slow), send(slow)
	require.Eventually(t, func() bool { return budget.Used() == 2*longHead }, patience, time.Millisecond)
	assert.Equal(t, "200 ok", answer(t, bufio.NewReader(send(get))))
	res, err := http.ReadResponse(bufio.NewReader(send(slow)), nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
	assert.Equal(t, "1", res.Header.Get("Retry-After"))
	require.NoError(t, res.Body.Close())
	_, err = io.WriteString(first, "\r\n\r\n")
	require.NoError(t, err)
	assert.Equal(t, "200 ok", answer(t, bufio.NewReader(first)))
	require.NoError(t, second.Close())
	require.Eventually(t, func() bool { return budget.Used() == 0 }, patience, time.Millisecond)
}

// A handed connection has its own copy of the bytes that were read: the buffer is reused.
func TestWhatWasSeenOfAConnectionIsItsOwn(t *testing.T) {
	s := serving(t, http.HandlerFunc(ok), nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	var handed []net.Conn
	sent := func(i int) string { return fmt.Sprint(handedOn, i) }
	const conns = 20
	for i := range conns {
		c := dial(t, l.Addr().String())
		_, err := io.WriteString(c, sent(i))
		require.NoError(t, err)
		require.NoError(t, c.CloseWrite())
		nc, err := l.Accept()
		require.NoError(t, err)
		defer nc.Close()
		s.newConn(lazyconn.New(nc, s.buffers), nc.(tcpConn), func(nc net.Conn) { handed = append(handed, nc) }).serve()
	}
	require.Len(t, handed, conns)
	for i, nc := range handed {
		text, err := io.ReadAll(nc)
		require.NoError(t, err)
		assert.Equal(t, sent(i), string(text))
	}
}

// Each piece of a chunk can be read when it arrives, also after an unusual head.
func TestPiecesOfAChunk(t *testing.T) {
	const chunked = "Host: localhost\r\nTransfer-Encoding: chunked\r\n"
	for name, head := range map[string]string{
		"plain":              "POST / HTTP/1.1\r\n" + chunked,
		"an absolute target": "POST http://localhost/ HTTP/1.1\r\n" + chunked,
		"a long head":        "POST / HTTP/1.1\r\n" + chunked + "X-Long: " + strings.Repeat("x", maxHead) + "\r\n",
		"many fields":        "POST / HTTP/1.1\r\n" + chunked + strings.Repeat("X: y\r\n", 200),
		"100 Continue":       "POST http://localhost/ HTTP/1.1\r\nExpect: x, 100-continue\r\n" + chunked,
	} {
		t.Run(name, func(t *testing.T) {
			pieces := make(chan string, 10)
			s := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(pieces)
				for buffer := make([]byte, 32<<10); ; {
					n, err := r.Body.Read(buffer)
					pieces <- string(buffer[:n])
					if err != nil {
						assert.ErrorIs(t, err, io.EOF)
						say(w, "ok")
						return
					}
				}
			}), nil)
			c := dial(t, s.address)
			_, err := io.WriteString(c, head+"\r\nffff\r\na")
			require.NoError(t, err)
			assert.Equal(t, "a", <-pieces)
			for _, piece := range []string{"bc", strings.Repeat("d", 0xffff-3)} {
				_, err = io.WriteString(c, piece)
				require.NoError(t, err)
				for got := ""; got != piece; got += <-pieces {
					require.True(t, strings.HasPrefix(piece, got))
				}
			}
			_, err = io.WriteString(c, "\r\n0\r\n\r\n")
			require.NoError(t, err)
			in := bufio.NewReader(c)
			if name == "100 Continue" {
				line, err := in.ReadString('\n')
				require.NoError(t, err)
				assert.Equal(t, "HTTP/1.1 100 Continue\r\n", line)
				_, err = in.Discard(2)
				require.NoError(t, err)
			}
			assert.Equal(t, "200 ok", answer(t, in))
		})
	}
}

// After a request with an absolute target or a long head, further requests on the connection are served, whether they are
// pipelined or sent later.
func TestRequestsAfterAnUnusualOne(t *testing.T) {
	s := serving(t, http.HandlerFunc(ok), nil)
	c := dial(t, s.address)
	in := bufio.NewReader(c)
	absolute := "POST http://localhost/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n"
	long := "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6000\r\nX-Long: " + strings.Repeat("x", maxHead) + "\r\n\r\n" + strings.Repeat("y", 6000)
	for range 2 {
		_, err := io.WriteString(c, get+absolute+"ab"+long+get+absolute+"cd")
		require.NoError(t, err)
		for range 5 {
			assert.Equal(t, "200 ok", answer(t, in))
		}
	}
}

// After a request in which another server may find another body, the connection ends (RFC 9112, 6.1): the rest could be a request
// that the other server has not seen.
func TestAnAmbiguousBodyEndsItsConnection(t *testing.T) {
	s := serving(t, http.HandlerFunc(ok), nil)
	const kept, chunked = "Host: localhost\r\nConnection: keep-alive\r\n", "Transfer-Encoding: chunked\r\n"
	many := strings.Repeat("X: y\r\n", 200)
	for _, row := range []struct {
		text string
		ends bool
	}{
		{"POST / HTTP/1.0\r\n" + kept + "Content-Length: 2\r\n\r\nab", false},
		{"POST / HTTP/1.0\r\n" + kept + "Content-Length: 2\r\n" + chunked + "\r\nab", true},
		{"POST / HTTP/1.0\r\n" + kept + chunked + "\r\n", true},
		{"POST / HTTP/1.0\r\n" + kept + chunked + many + "\r\n", true},
		{"POST / HTTP/1.1\r\n" + kept + chunked + "\r\n0\r\n\r\n", false},
		{"POST / HTTP/1.1\r\n" + kept + "Content-Length: 2\r\n" + chunked + "\r\n0\r\n\r\n", true},
		{"POST / HTTP/1.1\r\n" + kept + "Content-Length: 2\r\n" + chunked + many + "\r\n0\r\n\r\n", true},
	} {
		c := dial(t, s.address)
		_, err := io.WriteString(c, row.text+get)
		require.NoError(t, err)
		require.NoError(t, c.CloseWrite())
		in := bufio.NewReader(c)
		assert.Equal(t, "200 ok", answer(t, in))
		_, err = in.ReadByte()
		assert.Equal(t, row.ends, err != nil, "%.100q", row.text)
	}
}

// A connection is not used again if its body is still being read at the end of the request.
func TestABodyThatIsStillReadEndsItsConnection(t *testing.T) {
	reading := make(chan *body, 1)
	var requests atomic.Int64
	s := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ok(w, r)
		if requests.Add(1) > 1 {
			return
		}
		b := r.Body.(*body)
		b.mu.Lock() // as its Read does
		reading <- b
	}), nil)
	c := dial(t, s.address)
	_, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\na"+get)
	require.NoError(t, err)
	in := bufio.NewReader(c)
	assert.Equal(t, "200 ok", answer(t, in))
	_, err = in.ReadByte()
	require.Error(t, err)
	require.NoError(t, c.Close())
	require.Eventually(t, func() bool { return len(s.all()) == 0 }, patience, time.Millisecond)
	assert.EqualValues(t, 1, requests.Load())
	(<-reading).mu.Unlock()
}

// A connection lingers until its submitter has been silent for a while, and not for ever.
func TestLingeringIsBounded(t *testing.T) {
	for pause, want := range map[time.Duration]time.Duration{time.Hour: lingerIdle, lingerIdle - time.Second: lingerTime} {
		synctest.Test(t, func(t *testing.T) {
			here, there := net.Pipe()
			started := time.Now()
			go func() {
				for time.Sleep(pause); ; time.Sleep(pause) {
					if _, err := there.Write([]byte("x")); err != nil {
						return
					}
				}
			}()
			linger(here)
			assert.Equal(t, want, time.Since(started))
			require.NoError(t, here.Close())
			time.Sleep(pause) // the writer notices
		})
	}
}

// A connection that waits for its next request does not hold the last one or its response.
func TestIdleConnectionsHoldNothing(t *testing.T) {
	s := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 20_000))
		ok(w, r)
	}), nil)
	long := "GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + strings.Repeat("x", 20_000) + "\r\n\r\n"
	heap := func() int64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC() // also what pools hold
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	before := heap()
	const conns = 100
	for range conns {
		c := dial(t, s.address)
		_, err := io.WriteString(c, long)
		require.NoError(t, err)
		assert.Equal(t, "200 ok", answer(t, bufio.NewReader(c)))
	}
	idle := func() bool {
		return !slices.ContainsFunc(s.all(), func(c *conn) bool { return c.locked(func() bool { return c.state != waiting }) })
	}
	require.Eventually(t, idle, patience, time.Millisecond)
	assert.Less(t, (heap()-before)/conns, int64(10_000), "bytes for each connection")
}
