package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/proxy"
)

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

// A job has one identifier, on which upstream and record agree: that of the request, or one of pilotfish's own.
// A response has the ID if the upstream sent it or if stream.request_id is set. Error responses of pilotfish always have it.
func TestEveryJobHasAnIdentifier(t *testing.T) {
	var sent, answered string // X-Request-Id
	up := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if sent = r.Header.Get("X-Request-Id"); answered != "" {
			w.Header().Set("X-Request-Id", answered)
		}
	})
	for name, c := range map[string]struct{ upstream, given, answered string }{
		"of the request": {up, "job-7", ""}, "of pilotfish": {up, "", ""}, "two": {up, "job-7", "theirs"}, "of a job that fails": {refusing(t), "", ""},
		"asked for": {up, "", ""}, "asked for, two": {up, "job-7", "theirs"},
	} {
		asked := strings.HasPrefix(name, "asked for")
		side := startSidecar(t, setup{upstreams: []string{c.upstream}, wait: time.Millisecond, Config: proxy.Config{Config: job.Config{RequestID: asked}}})
		var header []string
		if c.given != "" {
			header = []string{"X-Request-Id", c.given}
		}
		sent, answered = "", c.answered
		res, _ := side.post("{}", header...)
		id := side.seen(1)[0].ID
		if c.given != "" {
			assert.Equal(t, c.given, id, name)
		}
		if c.upstream == up {
			assert.Equal(t, id, sent, name)
		}
		if c.upstream == up && !asked || c.answered != "" {
			id = c.answered
		}
		assert.Equal(t, id, res.Header.Get("X-Request-Id"), name)
	}
}

func TestGuardBeforeAnotherHandler(t *testing.T) {
	inner := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	for hosts, want := range map[string]int{"": 403, "other": 403, "evil.example": 204, "*": 204} {
		h := proxy.NewGuard([]string{hosts}).Wrap(inner)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "http://evil.example/metrics", nil))
		assert.Equal(t, want, w.Code, hosts)
		assert.Equal(t, want == 403, strings.Contains(w.Body.String(), "under the key hosts"), "the response names the key that allows the name")
	}
}
