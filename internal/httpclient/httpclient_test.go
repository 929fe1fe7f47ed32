package httpclient

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A redirect to /b ends there. One that is not followed is the response.
func TestRedirectsStayAtTheServer(t *testing.T) {
	for _, c := range []struct {
		method, from, to string
		status, requests int
	}{
		{"GET", "http://server:9001/a", "/b", 307, 2},
		{"HEAD", "http://server:9001/a", "/b", 301, 2},
		{"GET", "http://server:9001/a", "http://SERVER:9001/b", 302, 2},
		{"GET", "http://server/a", "http://server:80/b", 307, 2},
		{"GET", "https://server/a", "https://Server:443/b", 307, 2},
		{"GET", "http://server:9001/a", "http://server:9002/b", 307, 1},
		{"GET", "http://server:9001/a", "http://server/b", 307, 1},
		{"GET", "http://server:9001/a", "https://server:9001/b", 308, 1},
		{"GET", "http://server:9001/a", "http://other:9001/b", 308, 1},
		{"GET", "http://server:9001/a", "//other:9001/b", 303, 1},
		{"POST", "http://server:9001/a", "/b", 307, 1},
		{"POST", "http://server:9001/a", "/b", 302, 1},
		{"GET", "http://server:9001/a", "/a", 307, 1 + maxRedirects},
	} {
		requests, status := 0, 0
		client := New(roundTrip(func(r *http.Request) (*http.Response, error) {
			requests++
			if status = c.status; r.URL.Path == "/b" {
				status = http.StatusOK
			}
			return &http.Response{StatusCode: status, Header: http.Header{"Location": {c.to}}, Body: http.NoBody}, nil
		}))
		req, err := http.NewRequest(c.method, c.from, strings.NewReader("x"))
		require.NoError(t, err)
		resp, err := client.Do(req)
		require.NoError(t, err, c)
		resp.Body.Close()
		assert.Equal(t, []int{c.requests, status}, []int{requests, resp.StatusCode}, "requests and status of %v", c)
	}
}
