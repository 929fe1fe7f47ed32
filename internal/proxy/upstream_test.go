package proxy_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.org/pilotfish/test/loopback"
	"example.org/pilotfish/test/peer"
)

func reader(s string) io.Reader { return strings.NewReader(s) }

// answering serves every request on a connection with the same text.
func answering(t testing.TB, text string) (address string) {
	return peer.Listen(t, func(p *peer.Peer) {
		for p.Request() != nil {
			p.Say("%s", text)
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
	const unacknowledged = 0x5411 // SIOCOUTQ of Linux, which package unix does not have on other systems
	raw, err := c.SyscallConn()
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		left := -1
		_ = raw.Control(func(fd uintptr) { left, _ = unix.IoctlGetInt(int(fd), unacknowledged) })
		return left == 0
	}, patience, time.Millisecond)
}
