package submitterserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const halfSent = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\na"

// deadlines is a connection that reports read deadlines when they have been set.
type deadlines struct {
	*net.TCPConn
	of func(deadline time.Time)
}

func (c deadlines) SetReadDeadline(at time.Time) error {
	err := c.TCPConn.SetReadDeadline(at)
	c.of(at)
	return err
}

// A request that arrives just when a shutdown or the idle timeout ends the connection is
// served, because its submitter could not know whether it was processed.
func TestARequestThatComesAtTheEndIsServed(t *testing.T) {
	for name, idle := range map[string]time.Duration{"of the server": time.Hour, "of its time": time.Second} {
		t.Run(name, func(t *testing.T) {
			submitter := make(chan net.Conn, 1)
			send := sync.OnceFunc(func() {
				_, err := io.WriteString(<-submitter, get)
				assert.NoError(t, err)
			})
			cfg := Config{
				Handler:     http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { say(w, "ok") }),
				IdleTimeout: idle, ErrorLog: quiet(),
			}
			s := servingAs(t, cfg, func(nc net.Conn) net.Conn {
				return deadlines{nc.(*net.TCPConn), func(deadline time.Time) {
					if !deadline.IsZero() && time.Until(deadline) <= time.Second {
						time.Sleep(time.Until(deadline)) // not at all in a shutdown
						send()
					}
				}}
			})
			c := dial(t, s.address)
			in := bufio.NewReader(c)
			_, err := io.WriteString(c, get)
			require.NoError(t, err)
			submitter <- c
			require.Equal(t, "200 ok", answer(t, in))
			if idle == time.Hour {
				inner := s.one(t)
				waits := func() bool { return inner.state == waiting && inner.served == 1 }
				require.Eventually(t, func() bool { return inner.locked(waits) }, patience, time.Millisecond)
				require.NoError(t, s.Shutdown(t.Context(), s.http.Shutdown))
			}
			assert.Equal(t, "200 ok", answer(t, in))
		})
	}
}

// Submitters that pipeline requests of all kinds and disconnect at any time get complete responses in
// order. A shutdown at the same time waits for the started requests.
func TestPipelinesLeaversAndAShutdown(t *testing.T) {
	var begun, ended atomic.Int64
	s := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun.Add(1)
		defer ended.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		select {
		case <-r.Context().Done():
		case <-time.After(time.Duration(rand.IntN(3)) * watchAfter / 2):
		}
		w.Header()["Content-Type"] = nil
		w.Header().Set("Transfer-Encoding", "chunked")
		for _, piece := range []string{r.URL.Path, " ", string(body)} {
			_, _ = io.WriteString(w, piece)
			_ = http.NewResponseController(w).Flush()
		}
	}), nil)
	var all sync.WaitGroup
	var whole atomic.Int64
	for submitter := range 40 {
		all.Go(func() {
			for round := 0; ; round++ {
				c, err := net.Dial("tcp", s.address)
				if err != nil {
					return // the shutdown has started
				}
				pipeline(t, c, fmt.Sprintf("/%d.%d", submitter, round), &whole)
			}
		})
	}
	require.Eventually(t, func() bool { return whole.Load() > 300 }, patience, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, s.Shutdown(ctx, s.http.Shutdown))
	assert.Equal(t, begun.Load(), ended.Load())
	all.Wait()
}

// pipeline sends several requests at once and reads some of the responses.
func pipeline(t *testing.T, c net.Conn, name string, whole *atomic.Int64) {
	defer c.Close()
	assert.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	requests := 1 + rand.IntN(4)
	var text, wants []string
	for i := range requests {
		path, body := fmt.Sprintf("%s.%d", name, i), strings.Repeat("x", rand.IntN(3)*rand.IntN(9000))
		head := "POST " + path + " HTTP/1.1\r\nHost: localhost\r\n"
		if rand.IntN(8) == 0 {
			text = append(text, fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", head))
			body = "a"
		} else {
			text = append(text, fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body))
		}
		wants = append(wants, path+" "+body)
	}
	sent := strings.Join(text, "")
	if rand.IntN(4) == 0 {
		sent = sent[:rand.IntN(len(sent))]
	}
	var writing sync.WaitGroup
	defer writing.Wait()
	defer c.Close()
	writing.Go(func() {
		for rest := sent; rest != ""; {
			n := min(len(rest), 1+rand.IntN(4000))
			if _, err := io.WriteString(c, rest[:n]); err != nil {
				return // the submitter has disconnected, or the server has shut down
			}
			rest = rest[n:]
		}
		if len(sent) < len(strings.Join(text, "")) {
			_ = c.(*net.TCPConn).CloseWrite()
		}
	})
	in := bufio.NewReader(c)
	for _, want := range wants[:rand.IntN(requests+1)] {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK {
			assert.True(t, err != nil || len(sent) < len(strings.Join(text, "")), "%d %s", res.StatusCode, body)
			return
		}
		assert.Equal(t, want, string(body))
		whole.Add(1)
	}
}

// panicking panics when its deadline is set.
type panicking struct{ *net.TCPConn }

func (panicking) SetReadDeadline(time.Time) error { panic("as ordered") }

// A panic outside the handler ends its connection, and no other.
func TestAPanicEndsOneConnection(t *testing.T) {
	var first atomic.Bool
	s := serving(t, http.HandlerFunc(ok), func(c net.Conn) net.Conn {
		if first.CompareAndSwap(false, true) {
			return panicking{c.(*net.TCPConn)}
		}
		return c
	})
	ends(t, dial(t, s.address))
	c := dial(t, s.address)
	_, err := io.WriteString(c, get)
	require.NoError(t, err)
	assert.Equal(t, "200 ok", answer(t, bufio.NewReader(c)))
	assert.Len(t, s.all(), 1)
}
