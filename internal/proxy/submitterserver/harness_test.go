package submitterserver

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
)

// patience is the timeout of every wait of these tests.
const patience = 2 * time.Minute

// served is a server behind a listener, with net/http's behind it.
type served struct {
	*Server
	address string
	http    *http.Server
	behind  chan struct{}          // has one for each connection that was handed on
	active  atomic.Pointer[func()] // called when net/http has read a request, if set
}

// quiet is a log without output.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// serving serves h, with time-outs that are not met. wrap, if not nil, is put around each connection.
func serving(t testing.TB, h http.Handler, wrap func(net.Conn) net.Conn) *served {
	t.Helper()
	return servingAs(t, Config{Handler: h, IdleTimeout: time.Hour, ErrorLog: quiet()}, wrap)
}

// servingAs is serving with other settings.
func servingAs(t testing.TB, cfg Config, wrap func(net.Conn) net.Conn) *served {
	t.Helper()
	base, cut := context.WithCancel(context.Background())
	cfg.Base, cfg.Budget = base, cmp.Or(cfg.Budget, intake.NewBudget(1<<40, 0))
	s := New(cfg)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	all := &served{Server: s, address: l.Addr().String(), http: &http.Server{Handler: s.Wrap(cfg.Handler), ConnContext: s.ConnContext, ErrorLog: quiet()}, behind: make(chan struct{}, 100)}
	all.http.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			all.behind <- struct{}{}
		}
		if active := all.active.Load(); active != nil && state == http.StateActive {
			(*active)()
		}
	}
	if wrap != nil {
		l = wrapping{l, wrap}
	}
	var running sync.WaitGroup
	front := s.Listen(l)
	running.Go(func() { assert.ErrorIs(t, all.http.Serve(front), http.ErrServerClosed) })
	t.Cleanup(func() {
		cut()
		_ = all.http.Close()
		s.Close()
		running.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		assert.NoError(t, all.Shutdown(ctx, all.http.Shutdown), "connections are left")
	})
	return all
}

type wrapping struct {
	net.Listener
	wrap func(net.Conn) net.Conn
}

func (l wrapping) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.wrap(c), nil
}

// submitter is a connection to a server.
type submitter struct {
	*net.TCPConn
	t  testing.TB
	in *bufio.Reader
}

// dial connects, for a bounded time.
func dial(t testing.TB, address string) *submitter {
	t.Helper()
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	return &submitter{c.(*net.TCPConn), t, bufio.NewReader(c)}
}

// says sends a text.
func (s *submitter) says(text string) {
	s.t.Helper()
	_, err := io.WriteString(s, text)
	require.NoError(s.t, err)
}

// reply is a response.
type reply struct {
	status int
	header http.Header
	ends   bool // the connection
	body   string
}

// response reads a response.
func (s *submitter) response() reply {
	s.t.Helper()
	res, err := http.ReadResponse(s.in, nil)
	require.NoError(s.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(s.t, err)
	return reply{res.StatusCode, res.Header, res.Close, string(text)}
}

// served requires the response of the handler ok.
func (s *submitter) served(of ...any) {
	s.t.Helper()
	r := s.response()
	assert.Equal(s.t, "200 ok", fmt.Sprint(r.status, " ", r.body), of...)
}

// ends requires that the connection ends without a response.
func (s *submitter) ends() {
	s.t.Helper()
	rest, err := io.ReadAll(s.in)
	assert.NoError(s.t, err)
	assert.Empty(s.t, rest)
}

// behaviours is a handler whose behaviour depends on the path. Like the proxy, it reads the whole body, declares the
// framing of its response, and controls the Content-Type.
func behaviours(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		_, after := r.Body.Read(make([]byte, 1))
		assertIs(after, io.EOF)
	}
	h := w.Header()
	h["Content-Type"] = nil
	_, guessed := r.Header["Pragma"] // net/http adds a Cache-Control
	if _, listed := r.Header["Trailer"]; listed || guessed {
		r.Header.Del("Trailer") // net/http takes it out of some requests
		r.Header.Del("Cache-Control")
	}
	text := fmt.Sprintf("%s %s %s %d %v %s %t %t", r.Method, r.RequestURI, r.Host, r.ContentLength, headerText(r.Header), body, err == nil, r.RemoteAddr != "")
	control := http.NewResponseController(w)
	chunked := func() { h.Set("Transfer-Encoding", "chunked") }
	switch r.URL.Path {
	case "/none":
		return
	case "/nothing":
		w.WriteHeader(http.StatusNoContent)
		_, _ = io.WriteString(w, text)
		return
	case "/unmodified":
		h.Set("Content-Length", "1000")
		w.WriteHeader(http.StatusNotModified)
		return
	case "/chunked":
		chunked()
	case "/pieces":
		chunked()
		for _, piece := range []string{"", "a", strings.Repeat("b", 10_000), ""} {
			_, _ = io.WriteString(w, piece)
			_ = control.Flush()
		}
	case "/declared":
		h.Set("Content-Length", "5")
		return
	case "/trailers", "/badtrailers":
		chunked()
		h.Set("Trailer", "Announced")
		if r.URL.Path == "/badtrailers" {
			h.Set("Trailer", "Announced, Content-Length")
		}
		defer func() {
			h.Set(http.TrailerPrefix+"Announced", "1")
			h.Set(http.TrailerPrefix+"Unannounced", "2")
		}()
	case "/interim":
		h.Set("Link", "</a>")
		h.Set("Content-Length", "10")
		w.WriteHeader(http.StatusEarlyHints)
		h.Set("Content-Length", fmt.Sprint(len(text)))
	case "/short":
		h.Set("Content-Length", fmt.Sprint(len(text)+1))
	case "/long":
		h.Set("Content-Length", fmt.Sprint(len(text)))
		_, _ = io.WriteString(w, text)
		_, err := io.WriteString(w, "more")
		assertIs(err, http.ErrContentLength)
		return
	case "/zero":
		h.Set("Content-Length", "0")
		_, err := io.WriteString(w, "more")
		assertIs(err, http.ErrContentLength)
		return
	case "/close":
		h.Set("Connection", "close")
		h.Set("Content-Length", fmt.Sprint(len(text)))
	case "/abort":
		h.Set("Content-Length", "10000")
		_, _ = io.WriteString(w, text)
		_ = control.Flush()
		panic(http.ErrAbortHandler)
	case "/panic":
		panic("as ordered")
	case "/odd":
		h.Set("Content-Length", fmt.Sprint(len(text)))
		h["X-Lines"] = []string{"a\r\nInjected: b", " spaced "}
		h["not a name"] = []string{"x"}
		h["Date"] = nil
		w.WriteHeader(799)
	default:
		h.Set("Content-Length", fmt.Sprint(len(text)))
	}
	_, _ = io.WriteString(w, text)
}

func assertIs(err, target error) {
	if !errors.Is(err, target) {
		panic(fmt.Sprintf("%v is not %v", err, target))
	}
}

func headerText(h http.Header) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if name == "Date" {
			h = http.Header{name: {"other"}}
		}
		fmt.Fprintf(&b, "%s=%q ", name, h[name])
	}
	return b.String()
}

// exchange sends bytes, half-closes the connection, and returns a description of all that is received. It
// ignores Connection, because net/http does not always announce the end of a connection.
func exchange(t testing.TB, address string, sent []byte) string {
	c := dial(t, address)
	defer c.Close()
	_, err := c.Write(sent)
	require.NoError(t, err)
	require.NoError(t, c.CloseWrite())
	var b strings.Builder
	for {
		res, err := http.ReadResponse(c.in, nil)
		if err != nil {
			broken := !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF)
			fmt.Fprintf(&b, "end, broken: %v\n", broken)
			return b.String()
		}
		body, err := io.ReadAll(res.Body)
		// A response of the server itself is a problem document here, and text there.
		own := res.Header.Get("Pilotfish-Reason") != "" || res.ContentLength < 0 && res.Header.Get("Date") == "" && res.StatusCode >= 400
		if own || res.StatusCode == http.StatusExpectationFailed {
			fmt.Fprintf(&b, "refused with %d\n", res.StatusCode)
			_ = res.Body.Close()
			continue
		}
		date := len(res.Header["Date"])
		delete(res.Header, "Date")
		delete(res.Header, "Connection") // in HTTP/1.0, net/http announces some connections that it closes as kept
		if res.StatusCode == http.StatusNotModified {
			delete(res.Header, "Content-Length") // net/http omits it
		}
		fmt.Fprintf(&b, "%d %s date=%d length=%d %s %q trailers: %s error: %v\n",
			res.StatusCode, res.Status, date, res.ContentLength, headerText(res.Header), body, headerText(res.Trailer), err != nil)
		_ = res.Body.Close()
	}
}
