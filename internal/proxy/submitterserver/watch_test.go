package submitterserver

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const lasting = "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n"

// watching is a server with one connection. Its handler responds at once, except to /wait.
type watching struct {
	*submitter
	t             *testing.T
	server        *served
	inner         *conn
	begun, finish chan struct{} // of /wait
	gone          chan struct{} // its submitter is
}

func newWatching(t *testing.T, idleTimeout time.Duration) *watching {
	t.Helper()
	w := &watching{t: t, begun: make(chan struct{}, 1), finish: make(chan struct{}), gone: make(chan struct{}, 1)}
	h := http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
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
	})
	w.server = servingAs(t, Config{Handler: h, IdleTimeout: idleTimeout, ErrorLog: quiet()}, nil)
	w.submitter = dial(t, w.server.address)
	w.inner = w.server.one(t)
	return w
}

// one waits for the one connection of a server.
func (s *served) one(t testing.TB) *conn {
	t.Helper()
	require.Eventually(t, func() bool { return len(s.all()) == 1 }, patience, time.Millisecond)
	return s.all()[0]
}

// quick sends a request that gets its response at once.
func (w *watching) quick() {
	w.t.Helper()
	w.says(get)
	w.served()
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
	w.finish <- struct{}{}
	w.served()
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
	w.served()
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
			over := func() bool { return w.inner.locked(func() bool { return !w.inner.ticking }) } // the timer found no request
			require.Eventually(w.t, over, patience, time.Millisecond)
			assert.False(w.t, w.inner.isWatched())
		},
		"one that lasted":         (*watching).long,
		"two that lasted":         func(w *watching) { w.long(); w.long() },
		"a slow body":             (*watching).slow,
		"a quick one and a slow":  func(w *watching) { w.quick(); w.slow() },
		"one that lasted, a slow": func(w *watching) { w.long(); w.slow() },
	} {
		t.Run("after "+name, func(t *testing.T) {
			w := newWatching(t, time.Minute)
			before(w)
			w.says(lasting)
			soon(t, w.begun)
			require.NoError(t, w.Close())
			soon(t, w.gone)
		})
	}
}

// The idle timeout of the connection does not end the watch of a request.
func TestAWatchOutlastsTheIdleTimeout(t *testing.T) {
	const idleTimeout = 300 * time.Millisecond
	w := newWatching(t, idleTimeout)
	started := time.Now()
	w.says(lasting)
	soon(t, w.begun)
	require.Eventually(t, func() bool { return time.Since(started) > idleTimeout && w.inner.isWatched() }, patience, time.Millisecond)
	require.NoError(t, w.Close())
	soon(t, w.gone)
}
