package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// witness is an upstream that remembers the requests that it got.
type witness struct {
	*upstream
	mu       sync.Mutex
	requests []string // method, target and body
}

func newWitness(t *testing.T) *witness {
	w := &witness{}
	w.upstream = scripted(t, func(p *peer) {
		for r := p.request(); r != nil; r = p.request() {
			w.mu.Lock()
			w.requests = append(w.requests, fmt.Sprintf("%s %s %s", r.Method, r.RequestURI, r.body))
			w.mu.Unlock()
			p.say(ok)
		}
	})
	return w
}

// take returns the requests so far and forgets them.
func (w *witness) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	got := w.requests
	w.requests = nil
	return got
}

const post = "POST / HTTP/1.1\r\nHost: localhost\r\n"

// What wirecases has not, as it is long, or half-closes: it must be refused or the
// connection closed, and no upstream may see anything of it.
func TestMalformedRequestsReachNoUpstream(t *testing.T) {
	w := newWitness(t)
	c := startSidecar(t, setup{upstreams: []string{w.address}})
	for _, r := range []string{
		"Content-Length: 2.0\r\n\r\n{}", "Content-Length: 1e1\r\n\r\n{}", "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
		chunked("2;" + strings.Repeat("a", 20<<10) + "\r\n{}\r\n0\r\n\r\n"), chunked("2\r\n{}\r\n0\r\nX y: 1\r\n\r\n"),
		chunked(strings.Repeat("1;"+strings.Repeat("a", 1000)+"\r\n \r\n", 1000) + "0\r\n\r\n"),
	} {
		t.Run(fmt.Sprintf("%.60q", r), func(t *testing.T) {
			s := c.connect()
			s.say("%s%s", post, r)
			_ = s.tcp().CloseWrite() // it may be closed already
			status := s.status()
			assert.True(t, status == 0 || status >= 400, "status %d", status)
			assert.Empty(t, w.take())
			assert.Zero(t, s.status(), "and the connection ends")
		})
	}
}

func chunked(s string) string { return "Transfer-Encoding: chunked\r\n\r\n" + s }

func TestAbsoluteTargetsGoToTheScheduledUpstream(t *testing.T) {
	w, other := newWitness(t), newWitness(t)
	c := startSidecar(t, setup{upstreams: []string{w.address}})
	s := c.connect()
	s.say("GET http://169.254.169.254/latest/meta-data HTTP/1.1\r\nHost: localhost\r\n\r\n")
	assert.Equal(t, 403, s.status())
	s = c.connect()
	s.say("GET http://%s/x HTTP/1.1\r\nHost: localhost\r\n\r\n", other.address)
	assert.Equal(t, 200, s.status())
	assert.Equal(t, []string{"GET /x "}, w.take())
	assert.Empty(t, other.take())
}

func TestHeadBounds(t *testing.T) {
	w := newWitness(t)
	c := startSidecar(t, setup{upstreams: []string{w.address}})
	for name, tc := range map[string]struct {
		head string
		want []int
	}{
		"a header of 1 MiB":      {post + "X: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", []int{431, 0}},
		"10,000 headers":         {post + strings.Repeat("X: 1\r\n", 10000) + "\r\n", []int{431, 200}},
		"an unknown expectation": {post + "Expect: foo\r\nContent-Length: 2\r\n\r\n{}", []int{417}},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.connect()
			go s.say("%s", tc.head)
			assert.Contains(t, tc.want, s.status())
		})
	}
}

func TestExpectContinue(t *testing.T) {
	w := newWitness(t)
	c := startSidecar(t, setup{upstreams: []string{w.address}})
	s := c.connect()
	s.say(post + "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
	assert.Equal(t, http.StatusContinue, s.interim())
	s.say("{}")
	assert.Equal(t, 200, s.status())
	assert.Equal(t, []string{"POST / {}"}, w.take())

	s = c.connect()
	s.say(post + "Expect: 100-continue\r\nContent-Length: 67108865\r\n\r\n")
	assert.Equal(t, 413, s.status(), "without asking for the body")

	down := startSidecar(t, setup{upstreams: []string{refusing(t)}, wait: time.Millisecond})
	s = down.connect()
	s.say(post + "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
	assert.Equal(t, http.StatusContinue, s.interim())
	s.say("{}")
	assert.Equal(t, 502, s.status())
}
