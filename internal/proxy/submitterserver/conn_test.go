package submitterserver

import (
	"io"
	"net"
	"net/http"
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
			c.says(get)
			submitter <- c
			c.served()
			if idle == time.Hour {
				inner := s.one(t)
				waits := func() bool { return inner.state == waiting && inner.served == 1 }
				require.Eventually(t, func() bool { return inner.locked(waits) }, patience, time.Millisecond)
				require.NoError(t, s.Shutdown(t.Context(), s.http.Shutdown))
			}
			c.served()
		})
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
	dial(t, s.address).ends()
	c := dial(t, s.address)
	c.says(get)
	c.served()
	assert.Len(t, s.all(), 1)
}
