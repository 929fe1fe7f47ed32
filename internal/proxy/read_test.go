package proxy_test

import (
	"bytes"
	"compress/gzip"
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

// What a submitter sends is passed on as it is. Whether it was read as a job, and
// if not why, is told: a job of high priority must not become one of low priority
// without anybody's notice.
func TestWhatIsReadAsAJob(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(make([]byte, 10<<20))
	require.NoError(t, z.Close())
	const posted = `{"project_id":1,"priority":"high"}`
	const form = "application/x-www-form-urlencoded" // what curl -d says of every body
	for name, c := range map[string]struct {
		method, contentType, coding, body string
		read                              intake.Reading
		unread                            string
	}{
		"JSON":                     {"POST", "application/json", "", posted, intake.Full, ""},
		"JSON, written oddly":      {"POST", "Application/JSON; charset=utf-8", "", posted, intake.Full, ""},
		"a kind of JSON":           {"POST", "application/vnd.x+json", "", posted, intake.Full, ""},
		"no type":                  {"POST", "", "", posted, intake.Full, ""},
		"not encoded":              {"POST", "", "identity", posted, intake.Full, ""},
		"a form that is an object": {"POST", form, "", posted, intake.Full, ""},
		"text that is an object":   {"POST", "text/plain", "", "\r\n\t " + posted, intake.Full, ""},
		"without a project":        {"POST", form, "", `{"priority":"high"}`, intake.NoProject, ""},
		"GET":                      {"GET", "", "", "", intake.Unread, "it is no POST"},
		"another method":           {"PUT", "application/json", "", posted, intake.Unread, "it is no POST"},
		"an odd method":            {"BREW", "application/json", "", "{", intake.Unread, "it is no POST"},
		"an empty POST":            {"POST", "application/json", "", "", intake.Unread, "it has no body"},
		"a form":                   {"POST", form, "", "a=b", intake.Unread, `its body does not begin with {, and its Content-Type is "application/x-www-form-urlencoded"`},
		"an unfinished object":     {"POST", "text/csv", "", `{"project_id":`, intake.Unread, `its Content-Type is "text/csv", and its body no job: invalid JSON at line 1, column 15 (byte 14): it ends within the job`},
		"an object that is no job": {"POST", "text/csv", "", `{"priority":"urgent"}`, intake.Unread, `its Content-Type is "text/csv", and its body no job: /priority at line 1, column 13 (byte 12) must be "high" or "low", not "urgent"`},
		"a gzip bomb":              {"POST", "application/json", "gzip", bomb.String(), intake.Unread, `its body is encoded: "gzip"`},
		"what is no gzip":          {"POST", "application/json", "gzip", posted, intake.Unread, `its body is encoded: "gzip"`},
	} {
		t.Run(name, func(t *testing.T) {
			side := startSidecar(t, setup{upstreams: []string{serving(t, echo)}, Config: proxy.Config{Config: job.Config{ExplainHeaders: true}}})
			r, err := http.NewRequest(c.method, side.url("/v1/jobs"), strings.NewReader(c.body))
			require.NoError(t, err)
			if c.contentType != "" {
				r.Header.Set("Content-Type", c.contentType)
			}
			if c.coding != "" {
				r.Header.Set("Content-Encoding", c.coding)
			}
			res, err := client(t).Do(r)
			require.NoError(t, err)
			defer res.Body.Close()
			got, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			assert.Equal(t, 200, res.StatusCode)
			assert.Equal(t, c.body, string(got))
			assert.Equal(t, c.read.String(), res.Header.Get("Pilotfish-Read"))
			record := side.seen(1)[0]
			assert.Equal(t, []string{c.method, "/v1/jobs", "127.0.0.1"}, []string{record.Method, record.Path, strings.Split(record.Peer, ":")[0]})
			assert.Equal(t, c.read, record.Read)
			assert.Equal(t, c.unread, record.Unread)
			assert.Equal(t, c.read == intake.Full, record.Facts.Key != 0)
			assert.Equal(t, c.read != intake.Unread, record.Facts.Priority == selection.High)
		})
	}
}

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
