package submitterserver

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/proxy/lazyconn"
	"example.org/pilotfish/internal/record"
)

// handedOn starts a connection that is handed over. Without HTTP/2, net/http's server passes it to the handler as a request.
const handedOn = "PRI * HTTP/2.0\r\n\r\n"

// An interruption from before the hand-over has no effect on a handed connection.
func TestAConnectionThatIsHandedOnIsLeftAlone(t *testing.T) {
	s := serving(t, http.HandlerFunc(ok), nil)
	c := dial(t, s.address)
	inner := s.one(t)
	c.says(handedOn[:16])
	require.Eventually(t, func() bool { return inner.locked(func() bool { return inner.state == starting }) }, patience, time.Millisecond)
	c.says(handedOn[16:])
	soon(t, s.behind)
	inner.interruptIdle() // as a shutdown does that began before
	c.served()
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
		c.says(sent(i))
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
			c.says(head + "\r\nffff\r\na")
			assert.Equal(t, "a", <-pieces)
			for _, piece := range []string{"bc", strings.Repeat("d", 0xffff-3)} {
				c.says(piece)
				for got := ""; got != piece; got += <-pieces {
					require.True(t, strings.HasPrefix(piece, got))
				}
			}
			c.says("\r\n0\r\n\r\n")
			c.served()
		})
	}
}

// The end of a request also ends a read of its body that goes on, so that the connection can linger and end. It is not used again.
func TestAReadOfTheBodyEndsWithItsRequest(t *testing.T) {
	t.Parallel() // it takes lingerIdle
	ended := make(chan struct{}, 1)
	s := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		go func() {
			_, _ = r.Body.Read(make([]byte, 1))
			ended <- struct{}{}
		}()
		b := r.Body.(*body)
		for b.conn.locked(func() bool { return b.conn.state != reading }) {
			runtime.Gosched()
		}
		w.Header().Set("Content-Length", "2")
		_, _ = io.WriteString(w, "ok")
	}), nil)
	c := dial(t, s.address)
	c.says("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n")
	c.served()
	c.ends()
	soon(t, ended)
}

// An error response is abandoned if the submitter does not read it.
func TestARefusalThatIsNotReadEnds(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	there, err := net.Dial("unix", l.Addr().String())
	require.NoError(t, err)
	accepted, err := l.Accept()
	require.NoError(t, err)
	require.NoError(t, l.Close())
	here := accepted.(*net.UnixConn)
	s := New(Config{Base: context.Background(), ErrorLog: quiet()})
	c := s.newConn(lazyconn.New(here, s.buffers), here, nil)
	for _, size := range []int{64 << 20, 1} { // fill the buffers of the connection, to the last byte
		require.NoError(t, here.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
		for err = nil; err == nil; {
			_, err = here.Write(make([]byte, size))
		}
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	}
	ended := make(chan struct{}, 1)
	go func() {
		c.refuse(record.ErrHead)
		ended <- struct{}{}
	}()
	require.Eventually(t, func() bool { return c.locked(func() bool { return c.state == lingering }) }, patience, time.Millisecond)
	require.NoError(t, there.Close())
	soon(t, ended)
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
		for i := range 500 {
			w.Header().Set(fmt.Sprint("X-", i), "x")
		}
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
		c.says(long)
		c.served()
	}
	idle := func() bool {
		return !slices.ContainsFunc(s.all(), func(c *conn) bool { return c.locked(func() bool { return c.state != waiting }) })
	}
	require.Eventually(t, idle, patience, time.Millisecond)
	assert.Less(t, (heap()-before)/conns, int64(10_000), "bytes for each connection")
}
