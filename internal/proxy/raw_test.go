package proxy_test

import (
	"bufio"
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
	conn, err := net.Dial("tcp", c.address)
	require.NoError(c.t, err)
	require.NoError(c.t, conn.SetDeadline(time.Now().Add(patience)))
	c.t.Cleanup(func() { _ = conn.Close() })
	return &submitter{Conn: conn, t: c.t, in: bufio.NewReader(conn)}
}

// say writes as it stands. The other side may close at any time.
func (s *submitter) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.Conn, format, args...)
}

// job sends a job whole.
func (s *submitter) job(body string) {
	s.say("POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// response reads an answer's head.
func (s *submitter) response() *http.Response {
	s.t.Helper()
	res, err := http.ReadResponse(s.in, nil) //nolint:bodyclose // it ends with the connection
	require.NoError(s.t, err)
	return res
}

// interim reads an answer's head that has no body, and returns its status.
func (s *submitter) interim() int {
	s.t.Helper()
	res := s.response()
	_ = res.Body.Close()
	return res.StatusCode
}

// status reads an answer and returns its status; 0 when the connection just ended.
func (s *submitter) status() int {
	res, err := http.ReadResponse(s.in, nil)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// rest reads until the connection ends.
func (s *submitter) rest() (string, error) {
	b, err := io.ReadAll(s.in)
	return string(b), err
}
