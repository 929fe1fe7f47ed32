package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/pkg/selection"
)

// What stands in headers and in the path is read of every request, and bodies pass
// as they are.
func TestMembersOutsideTheBody(t *testing.T) {
	settings := intake.Default()
	settings.Project, settings.Priority = intake.Places{{Path: "/cache/*"}}, intake.Place{Header: "X-Priority"}
	outside, err := intake.NewReader(settings)
	require.NoError(t, err)
	side := startSidecar(t, setup{upstreams: []string{serving(t, echo)}, Config: proxy.Config{Config: job.Config{Reader: outside}}})
	send := func(method, path, priority, body string) (int, string) {
		r, err := http.NewRequest(method, side.url(path), strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("X-Priority", priority)
		res, err := client(t).Do(r)
		require.NoError(t, err)
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, string(text)
	}
	status, text := send("PUT", "/cache/a%2fb/c?x=/cache/d", "high", "\x00{")
	assert.Equal(t, 200, status)
	assert.Equal(t, "\x00{", text)
	record := side.seen(1)[0]
	assert.Equal(t, []string{"PUT", "/cache/a%2fb/c", "127.0.0.1"}, []string{record.Method, record.Path, strings.Split(record.Peer, ":")[0]})
	assert.Equal(t, "a/b", record.Facts.Project)
	assert.Equal(t, selection.High, record.Facts.Priority)
	assert.Equal(t, intake.Full, record.Read)
	status, text = send("GET", "/cache/a", "urgent", "")
	assert.Equal(t, 400, status)
	assert.Contains(t, text, `header X-Priority must be \"high\" or \"low\", not \"urgent\"`)
}

// A submitter that reads nothing before it has sent everything gets the error response, however its
// request is framed, and however large its body is.
func TestAnErrorReachesASubmitterThatIsStillSending(t *testing.T) {
	const size = 24 << 20
	sized := fmt.Sprintf("Content-Length: %d\r\n\r\n", size)
	c := startSidecar(t, setup{Config: proxy.Config{Config: job.Config{MaxBody: 1 << 20}}})
	for name, row := range map[string]struct {
		head   string
		status int
	}{
		"a length":             {"POST / HTTP/1.1\r\nHost: localhost\r\n" + sized, 413},
		"chunks":               {fmt.Sprintf("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n", size), 413},
		"Expect":               {"POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n" + sized, 413},
		"Expect and chunks":    {fmt.Sprintf("POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n", size), 413},
		"Connection: close":    {"POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + sized, 413},
		"HTTP/1.0":             {"POST / HTTP/1.0\r\n" + sized, 413},
		"a foreign host":       {"POST / HTTP/1.1\r\nHost: elsewhere\r\n" + sized, 403},
		"a broken chunk":       {"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 400},
		"a head that is long":  {"POST / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n" + sized, 431},
		"a head that is wrong": {"POST / HTTP/1.1\r\nHost: localhost\r\nX X: x\r\n" + sized, 400},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.connect()
			_, err := io.WriteString(s, row.head)
			require.NoError(t, err)
			piece := make([]byte, 1<<20)
			for range size / len(piece) {
				_, err = s.Write(piece)
				require.NoError(t, err)
			}
			status := s.status()
			for status == http.StatusContinue {
				status = s.status()
			}
			assert.Equal(t, row.status, status)
		})
	}
}
