package submitterserver

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const get = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

// answer reads an answer with a length.
func answer(t testing.TB, in *bufio.Reader) string {
	t.Helper()
	res, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return fmt.Sprint(res.StatusCode, " ", string(body))
}

func say(w http.ResponseWriter, text string) {
	w.Header()["Content-Type"] = nil
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	_, _ = io.WriteString(w, text)
}

func TestOnlyPlainConnectionsAreServedHere(t *testing.T) {
	s := serving(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { say(w, "ok") }), nil)
	for _, row := range []struct {
		text  string
		plain bool
	}{
		{get, true},
		{"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nConnection: Keep-Alive\r\n\r\na", true},
		{"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", false},
		{"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: other\r\n\r\n", false},
		{"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", false},
		{"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: other\r\n\r\n", false},
		{"GET / HTTP/1.1\r\nHost: localhost\r\nTE: trailers\r\n\r\n", false},
		{"GET / HTTP/1.1\r\nHost: localhost\r\nTrailer: End\r\n\r\n", false},
		{"GET / HTTP/1.1\r\nHost: localhost\r\nHTTP2-Settings: x\r\n\r\n", false},
		{"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n", false},
		{"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false},
		{"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\na", false},
		{"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 4<<10) + "\r\n\r\n", false},
	} {
		c := dial(t, s.address)
		_, err := io.WriteString(c, get+row.text)
		require.NoError(t, err)
		in := bufio.NewReader(c)
		assert.Equal(t, "200 ok", answer(t, in))
		res, err := http.ReadResponse(in, nil)
		for err == nil && res.StatusCode == http.StatusContinue {
			res, err = http.ReadResponse(in, nil)
		}
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		assert.Equal(t, "ok", string(body))
		_ = res.Body.Close()
		if !row.plain {
			<-s.behind
		}
		assert.Empty(t, s.behind, "%.60q", row.text)
		_ = c.Close()
	}
}

// A submitter that leaves ends its request's context. One that sends its next request early does not.
func TestSubmittersAreWatched(t *testing.T) {
	t.Run("together", func(t *testing.T) { testWatching(t, func(*Server) {}) })
	t.Run("each by itself", func(t *testing.T) { testWatching(t, func(s *Server) { s.watcher.Close() }) })
}

func testWatching(t *testing.T, prepare func(*Server)) {
	begun, finish, gone := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		begun <- struct{}{}
		select {
		case <-finish:
		case <-r.Context().Done():
			gone <- struct{}{}
		}
		say(w, "ok")
	}), nil)
	prepare(s.Server)
	leaving := dial(t, s.address)
	_, err := io.WriteString(leaving, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\na")
	require.NoError(t, err)
	<-begun
	require.NoError(t, leaving.Close())
	<-gone

	eager := dial(t, s.address)
	in := bufio.NewReader(eager)
	for range 3 {
		_, err = io.WriteString(eager, get)
		require.NoError(t, err)
		<-begun
		time.Sleep(2 * watchAfter) // the watch sees the next request come
		_, err = io.WriteString(eager, get)
		require.NoError(t, err)
		finish <- struct{}{}
		assert.Equal(t, "200 ok", answer(t, in))
		<-begun
		finish <- struct{}{}
		assert.Equal(t, "200 ok", answer(t, in))
	}
	assert.Empty(t, gone)
}

// A body's deadline is the handler's, and does not outlast it.
func TestDeadlines(t *testing.T) {
	failed := make(chan error, 1)
	s := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 0 {
			control := http.NewResponseController(w)
			assert.NoError(t, control.SetReadDeadline(time.Now().Add(time.Millisecond)))
			_, err := io.ReadAll(r.Body)
			failed <- err
			w.WriteHeader(http.StatusRequestTimeout)
			return
		}
		say(w, "ok")
	}), nil)
	c := dial(t, s.address)
	in := bufio.NewReader(c)
	_, err := io.WriteString(c, get+"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\na")
	require.NoError(t, err)
	assert.Equal(t, "200 ok", answer(t, in))
	var late net.Error
	require.ErrorAs(t, <-failed, &late)
	assert.True(t, late.Timeout())
	res, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	defer res.Body.Close()
	assert.Equal(t, http.StatusRequestTimeout, res.StatusCode)
	assert.True(t, res.Close, "the rest of the body is not read")
}

func TestShutdown(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	s := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			close(begun)
			<-finish
		}
		say(w, "ok")
	}), nil)
	idle, busy := dial(t, s.address), dial(t, s.address)
	_, err := io.WriteString(idle, get)
	require.NoError(t, err)
	assert.Equal(t, "200 ok", answer(t, bufio.NewReader(idle)))
	_, err = io.WriteString(busy, "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(t, err)
	<-begun
	ended := make(chan error, 1)
	go func() { ended <- s.shutdown(context.Background()) }()
	_, err = io.ReadAll(idle)
	require.NoError(t, err, "an idle connection is closed")
	assert.Empty(t, ended)
	close(finish)
	res, err := http.ReadResponse(bufio.NewReader(busy), nil)
	require.NoError(t, err)
	defer res.Body.Close()
	assert.True(t, res.Close)
	require.NoError(t, <-ended)
}

// A connection that comes before the listener is closed is waited for, too.
func TestShutdownWaitsForTheListener(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	s := serving(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-finish
		say(w, "ok")
	}), nil)
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(context.Background()) }()
	require.Eventually(t, s.closing.Load, patience, time.Millisecond)
	c := dial(t, s.address)
	_, err := io.WriteString(c, get)
	require.NoError(t, err)
	<-begun
	assert.Empty(t, ended)
	closed := make(chan error, 1)
	go func() { closed <- s.http.Shutdown(context.Background()) }()
	close(finish)
	assert.Equal(t, "200 ok", answer(t, bufio.NewReader(c)))
	assert.NoError(t, <-ended)
	assert.NoError(t, <-closed)
}

// counted counts writes.
type counted struct {
	net.Conn
	writes *atomic.Int64
}

func (c counted) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

func (c counted) SyscallConn() (syscall.RawConn, error) {
	raw, err := c.Conn.(syscall.Conn).SyscallConn()
	return countedRaw{raw, c.writes}, err
}

type countedRaw struct {
	syscall.RawConn
	writes *atomic.Int64
}

func (c countedRaw) Write(f func(fd uintptr) bool) error {
	return c.RawConn.Write(func(fd uintptr) bool {
		c.writes.Add(1)
		return f(fd)
	})
}

// Head and body of a small answer are one write, in chunks or not, though the handler flushes.
func TestASmallAnswerIsOneWrite(t *testing.T) {
	var writes atomic.Int64
	s := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/chunked" {
			w.Header().Set("Transfer-Encoding", "chunked")
		} else {
			w.Header().Set("Content-Length", "1000")
		}
		_, _ = w.Write(bytes.Repeat([]byte("a"), 1000))
		if r.URL.Path != "/chunked" {
			assert.NoError(t, http.NewResponseController(w).Flush())
		}
	}), func(c net.Conn) net.Conn { return counted{c, &writes} })
	c := dial(t, s.address)
	in := bufio.NewReader(c)
	const jobs = 10
	for i := range jobs {
		_, err := fmt.Fprintf(c, "GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n", []string{"", "chunked"}[i%2])
		require.NoError(t, err)
		assert.Len(t, answer(t, in), len("200 ")+1000)
	}
	assert.EqualValues(t, jobs, writes.Load())
}

// live is how many bytes of memory are in use.
func live() float64 {
	runtime.GC()
	runtime.GC() // the second empties the pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// A request that waits for its answer holds no buffer of the connection: what lives for each is
// less than a head's buffer, let alone the three of net/http's server. It has one goroutine.
func TestWhatAWaitingRequestHolds(t *testing.T) {
	finish := make(chan struct{})
	var begun atomic.Int64
	s := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		begun.Add(1)
		<-finish
		say(w, "ok")
	}), nil)
	defer close(finish)
	const waiting = 200
	conns := make([]net.Conn, waiting)
	for i := range conns {
		conns[i] = dial(t, s.address)
	}
	require.Eventually(t, func() bool { return len(s.all()) == waiting }, patience, time.Millisecond)
	before, goroutines := live(), runtime.NumGoroutine()
	for i, c := range conns {
		if i%2 == 0 {
			_, err := io.WriteString(c, get)
			require.NoError(t, err)
			continue
		}
		_, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4096\r\n\r\n"+strings.Repeat("x", 4096))
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return begun.Load() == waiting }, patience, time.Millisecond)
	each := (live() - before) / waiting
	t.Logf("%.0f bytes", each)
	assert.Less(t, each, 4000.0)
	if runtime.GOOS != "linux" {
		return
	}
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(s.all(), func(c *conn) bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return !c.watched || c.watch != nil
		})
	}, patience, time.Millisecond)
	assert.Less(t, runtime.NumGoroutine()-goroutines, waiting/2)
}
