package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// submitter is a raw connection to a sidecar.
type submitter struct {
	net.Conn
	t  testing.TB
	in *bufio.Reader
}

func (c *sidecar) connect() *submitter {
	c.t.Helper()
	return connectTo(c.t, c.address)
}

func connectTo(t testing.TB, address string) *submitter {
	t.Helper()
	conn, err := dial(t.Context(), "tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &submitter{Conn: conn, t: t, in: bufio.NewReader(conn)}
}

// tcp is the connection as it is.
func (s *submitter) tcp() *net.TCPConn { return s.Conn.(patient).Conn.(*net.TCPConn) }

// patient is a connection with patience for each read and each write: what they are part of may
// take long on a busy machine.
type patient struct{ net.Conn }

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: patience}
	c, err := dialer.DialContext(ctx, network, address)
	return patient{c}, err
}

func (c patient) Read(p []byte) (int, error) {
	_ = c.SetReadDeadline(time.Now().Add(patience)) // fails only on a closed connection
	return c.Conn.Read(p)
}

func (c patient) Write(p []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(patience)) // as above
	return c.Conn.Write(p)
}

// say writes a text. It ignores errors, because the sidecar can close the connection at any time.
func (s *submitter) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.Conn, format, args...)
}

// job sends a job whole.
func (s *submitter) job(body string) {
	s.say("POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// response reads the head of a response. The body ends at the latest with the connection.
func (s *submitter) response() (head reply, body io.Reader) {
	s.t.Helper()
	res, err := http.ReadResponse(s.in, nil)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = res.Body.Close() })
	return reply{res.StatusCode, res.Header}, res.Body
}

// status reads a response and returns its status, or 0 if the connection ends before it.
func (s *submitter) status() int {
	res, err := http.ReadResponse(s.in, nil)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// rest reads until the connection ends.
func (s *submitter) rest() (string, error) {
	b, err := io.ReadAll(s.in)
	return string(b), err
}
