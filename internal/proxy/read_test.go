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
	const theirs = "theirs"
	up := serving(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Received", r.Header.Get("X-Request-Id"))
		if r.Header.Get("X-Request-Id") == "job-7" {
			w.Header().Set("X-Request-Id", theirs)
		}
	})
	for _, asked := range []bool{false, true} {
		c := startSidecar(t, setup{upstreams: []string{up}, Config: proxy.Config{Config: job.Config{RequestID: asked}}})
		res, _ := c.post("{}")
		id := c.seen(1)[0].ID
		assert.NotEmpty(t, id)
		assert.Equal(t, []string{id, map[bool]string{true: id}[asked]}, []string{res.Header.Get("Received"), res.Header.Get("X-Request-Id")})
		res, _ = c.post("{}", "X-Request-Id", "job-7")
		assert.Equal(t, []string{"job-7", "job-7", theirs}, []string{c.seen(2)[1].ID, res.Header.Get("Received"), res.Header.Get("X-Request-Id")})
	}
	c := startSidecar(t, setup{wait: time.Millisecond})
	res, _ := c.post("{}")
	assert.Equal(t, c.seen(1)[0].ID, res.Header.Get("X-Request-Id"), "there is no upstream")
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
