package submitterserver

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const lasting = "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n"

// watching is a server with one connection. Its handler responds at once, except to /wait.
type watching struct {
	net.Conn
	t             *testing.T
	in            *bufio.Reader
	server        *served
	inner         *conn
	begun, finish chan struct{} // of /wait
	gone          chan struct{} // its submitter is
}

func newWatching(t *testing.T) *watching {
	t.Helper()
	w := &watching{t: t, begun: make(chan struct{}, 1), finish: make(chan struct{}), gone: make(chan struct{}, 1)}
	w.server = serving(t, http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/wait" {
			w.begun <- struct{}{}
			select {
			case <-w.finish:
			case <-r.Context().Done():
				w.gone <- struct{}{}
			}
		}
		say(to, "ok")
	}), nil)
	c := dial(t, w.server.address)
	w.Conn, w.in, w.inner = c, bufio.NewReader(c), w.server.one(t)
	return w
}

// one waits for the one connection of a server.
func (s *served) one(t testing.TB) *conn {
	t.Helper()
	require.Eventually(t, func() bool { return len(s.all()) == 1 }, patience, time.Millisecond)
	return s.all()[0]
}

// says sends a text.
func (w *watching) says(text string) {
	w.t.Helper()
	_, err := io.WriteString(w, text)
	require.NoError(w.t, err)
}

// quick sends a request that gets its response at once.
func (w *watching) quick() {
	w.t.Helper()
	w.says(get)
	assert.Equal(w.t, "200 ok", answer(w.t, w.in))
}

// locked calls f under the connection's lock.
func (c *conn) locked(f func() bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return f()
}

func (c *conn) isWatched() bool {
	return c.locked(func() bool { return c.watch != nil })
}

// long sends a request that gets its response when the watch has started. The watch ends with the request.
func (w *watching) long() {
	w.t.Helper()
	w.says(lasting)
	soon(w.t, w.begun)
	require.Eventually(w.t, w.inner.isWatched, patience, time.Millisecond)
	assert.True(w.t, w.inner.locked(w.inner.armed.IsZero), "its watch has no deadline")
	w.finish <- struct{}{}
	assert.Equal(w.t, "200 ok", answer(w.t, w.in))
	assert.False(w.t, w.inner.isWatched())
}

// slow sends a request with a late body. There is no watch while the body is read.
func (w *watching) slow() {
	w.t.Helper()
	w.says(halfSent)
	c := w.inner
	require.Eventually(w.t, func() bool { return c.locked(func() bool { return c.state == reading && !c.ticking }) }, patience, time.Millisecond)
	assert.False(w.t, c.isWatched())
	w.says("b")
	assert.Equal(w.t, "200 ok", answer(w.t, w.in))
}

// soon receives from a channel, with a timeout.
func soon(t *testing.T, event <-chan struct{}) {
	t.Helper()
	select {
	case <-event:
	case <-time.After(patience):
		t.Fatal("it did not come")
	}
}

// A disconnect of the submitter is detected, whatever requests came before on its connection.
func TestEveryRequestThatLastsIsWatched(t *testing.T) {
	for name, before := range map[string]func(*watching){
		"nothing":     func(*watching) {},
		"a quick one": (*watching).quick,
		"a pause": func(w *watching) {
			w.quick()
			time.Sleep(3 * watchAfter) // mostly, the timer finds no request
			assert.False(w.t, w.inner.isWatched())
		},
		"one that lasted":         (*watching).long,
		"two that lasted":         func(w *watching) { w.long(); w.long() },
		"a slow body":             (*watching).slow,
		"a quick one and a slow":  func(w *watching) { w.quick(); w.slow() },
		"one that lasted, a slow": func(w *watching) { w.long(); w.slow() },
	} {
		t.Run("after "+name, func(t *testing.T) {
			w := newWatching(t)
			before(w)
			w.says(lasting)
			soon(t, w.begun)
			require.NoError(t, w.Close())
			soon(t, w.gone)
		})
	}
}
