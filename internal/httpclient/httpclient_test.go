package httpclient

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRedirectsStayAtTheServer(t *testing.T) {
	for _, c := range []struct {
		method, location string
		status           int
		want             []string
	}{
		{"GET", "/a/", 307, []string{"http://server:9001/a", "http://server:9001/a/"}},
		{"HEAD", "/a/", 301, []string{"http://server:9001/a", "http://server:9001/a/"}},
		{"GET", "http://SERVER:9001/b", 302, []string{"http://server:9001/a", "http://SERVER:9001/b"}},
		{"GET", "http://server:9002/a/", 307, []string{"http://server:9001/a"}},
		{"GET", "http://server/a/", 307, []string{"http://server:9001/a"}},
		{"GET", "https://server:9001/a/", 308, []string{"http://server:9001/a"}},
		{"GET", "http://other:9001/a/", 308, []string{"http://server:9001/a"}},
		{"GET", "//other:9001/a/", 303, []string{"http://server:9001/a"}},
		{"POST", "/a/", 307, []string{"http://server:9001/a"}},
		{"POST", "/a/", 302, []string{"http://server:9001/a"}},
		{"GET", "/a", 307, strings.Fields(strings.Repeat("http://server:9001/a ", 1+maxRedirects))},
	} {
		var got []string
		client := New(roundTrip(func(r *http.Request) (*http.Response, error) {
			got = append(got, r.URL.String())
			status := c.status
			if strings.HasSuffix(r.URL.Path, "/a/") || strings.HasSuffix(r.URL.Path, "/b") {
				status = http.StatusOK
			}
			return &http.Response{StatusCode: status, Header: http.Header{"Location": {c.location}}, Body: io.NopCloser(strings.NewReader(""))}, nil
		}))
		req, err := http.NewRequest(c.method, "http://server:9001/a", strings.NewReader("x"))
		require.NoError(t, err)
		resp, err := client.Do(req)
		require.NoError(t, err, c)
		resp.Body.Close()
		if len(c.want) == 1 || c.location == "/a" {
			assert.Equal(t, c.status, resp.StatusCode, "%v", c)
		}
		assert.Equal(t, c.want, got, "%v", c)
	}
}

func TestTheDefaultPortIsTheSameServer(t *testing.T) {
	request := func(url string) *http.Request {
		r, err := http.NewRequest("GET", url, nil)
		require.NoError(t, err)
		return r
	}
	for a, b := range map[string]string{"http://server/": "http://server:80/", "https://server/": "https://Server:443/x"} {
		assert.NoError(t, CheckRedirect(request(b), []*http.Request{request(a)}))
	}
}
