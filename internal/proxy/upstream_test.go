package proxy_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.org/pilotfish/test/loopback"
)

func reader(s string) io.Reader { return strings.NewReader(s) }

// upstream is a server under a test's control, down to the byte.
type upstream struct {
	t       testing.TB
	address string
	conns   atomic.Int64
	open    sync.WaitGroup
	script  func(*peer)
}

// peer is one connection of an upstream.
type peer struct {
	net.Conn
	t  testing.TB
	in *bufio.Reader
	n  int64 // which connection, from 1
}

// received is a received request.
type received struct {
	*http.Request
	head string // as it came
	body []byte
}

// scripted starts an upstream that runs script for each connection and then closes it.
func scripted(t testing.TB, script func(*peer)) *upstream {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return scriptedOn(t, l, script)
}

func scriptedOn(t testing.TB, l net.Listener, script func(*peer)) *upstream {
	t.Helper()
	u := &upstream{t: t, address: l.Addr().String(), script: script}
	u.open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p := &peer{Conn: c, t: t, in: bufio.NewReader(c), n: u.conns.Add(1)}
			u.open.Go(func() {
				defer p.Close()
				script(p)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		u.open.Wait()
	})
	return u
}

// request reads the next request with its body, or returns nil if the connection ends.
func (p *peer) request() *received {
	head, err := p.head()
	if err != nil {
		return nil
	}
	r, err := http.ReadRequest(bufio.NewReader(io.MultiReader(strings.NewReader(head), p.in)))
	if err != nil {
		p.t.Errorf("a malformed request: %v\n%s", err, head)
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil
	}
	return &received{Request: r, head: head, body: body}
}

// head reads the lines up to the empty one.
func (p *peer) head() (string, error) {
	var head strings.Builder
	for {
		line, err := p.in.ReadString('\n')
		if err != nil {
			return "", err
		}
		head.WriteString(line)
		if line == "\r\n" {
			return head.String(), nil
		}
	}
}

// say writes as it stands; a peer that is gone is for the test to notice.
func (p *peer) say(format string, args ...any) {
	_, _ = fmt.Fprintf(p.Conn, format, args...)
}

// reset closes the connection with RST.
func (p *peer) reset() {
	_ = p.Conn.(*net.TCPConn).SetLinger(0)
	_ = p.Close()
}

// gone blocks until the other side has closed.
func (p *peer) gone() { _, _ = io.Copy(io.Discard, p.in) }

// answering serves every request on a connection with the same text.
func answering(t testing.TB, text string) *upstream {
	return scripted(t, func(p *peer) {
		for p.request() != nil {
			p.say("%s", text)
		}
	})
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// refusing is the address of an upstream where nobody listens.
func refusing(t testing.TB) string {
	address, err := loopback.Reserve()
	require.NoError(t, err)
	return address
}

// serving is an upstream that net/http serves.
func serving(t testing.TB, h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// echo responds with the body of the request.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = io.Copy(w, bytes.NewReader(body))
}

// drained waits until the kernel at the far end has acknowledged all that was
// written, so that a reset cannot destroy it on its way.
func drained(t *testing.T, c *net.TCPConn) {
	t.Helper()
	raw, err := c.SyscallConn()
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		left := -1
		_ = raw.Control(func(fd uintptr) { left, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
		return left == 0
	}, patience, time.Millisecond)
}
