package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

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

// The rest of a refused body is read, or a submitter that still sends would lose the answer. One
// that waits to be told to go on sends nothing more.
func TestTheRestOfARefusedBody(t *testing.T) {
	for _, expects := range []bool{false, true} {
		bubble(t, func(t *testing.T, m *memory) {
			c := startSidecar(t, setup{network: m})
			conn, err := m.Dial(t.Context(), "tcp", c.address)
			require.NoError(t, err)
			defer conn.Close()
			answer := make(chan string, 1)
			go func() {
				text, _ := io.ReadAll(conn)
				answer <- string(text)
			}()
			started, expect := time.Now(), ""
			if expects {
				expect = "Expect: 100-continue\r\n"
			}
			const size = 1 << 20
			_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: elsewhere\r\nContent-Length: %d\r\n%s\r\n", size, expect)
			require.NoError(t, err)
			if !expects {
				time.Sleep(2 * time.Second)
				_, err = conn.Write(make([]byte, size))
				require.NoError(t, err)
			}
			text := <-answer
			assert.Contains(t, text, "HTTP/1.1 403 Forbidden\r\n")
			assert.Contains(t, text, "Connection: close\r\n")
			assert.Less(t, time.Since(started), 4*time.Second, "of the bubble's time: less than the rest may take")
		})
	}
}
