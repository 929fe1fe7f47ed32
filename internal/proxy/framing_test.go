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

// refused sends a malformed request and half-closes: it must be refused or the
// connection closed, and no upstream may see anything of it.
func TestMalformedRequestsReachNoUpstream(t *testing.T) {
	groups := map[string][]string{
		"Content-Length": {
			"Content-Length: -1\r\n\r\n{}", "Content-Length: +2\r\n\r\n{}", "Content-Length: 2 2\r\n\r\n{}", "Content-Length: 0x2\r\n\r\n{}",
			"Content-Length: two\r\n\r\n{}", "Content-Length: 2,3\r\n\r\n{}", "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
			"Content-Length: 99999999999999999999\r\n\r\n{}", "Content-Length: 2.0\r\n\r\n{}", "Content-Length: 1e1\r\n\r\n{}",
		},
		"Transfer-Encoding": {
			"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
			"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
			"Transfer-Encoding: identity\r\n\r\n", "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
			"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		},
		"chunks": {
			chunked("x\r\n{}\r\n0\r\n\r\n"), chunked("0x2\r\n{}\r\n0\r\n\r\n"), chunked("-2\r\n{}\r\n0\r\n\r\n"), chunked("+2\r\n{}\r\n0\r\n\r\n"),
			chunked("2 \x00\r\n{}\r\n0\r\n\r\n"), chunked("2\r\n{}0\r\n\r\n"), chunked("2\r\n{}XX0\r\n\r\n"), chunked("\r\n{}\r\n0\r\n\r\n"),
			chunked("2\n{}\n0\n\n"), chunked("2\rX{}\r\n0\r\n\r\n"), chunked("fffffffffffffffff\r\n{}\r\n0\r\n\r\n"),
			chunked("2;" + strings.Repeat("a", 20<<10) + "\r\n{}\r\n0\r\n\r\n"), chunked("2\r\n{}\r\n"), chunked("2\r\n{}\r\n0\r\nX y: 1\r\n\r\n"),
			chunked(strings.Repeat("1;"+strings.Repeat("a", 1000)+"\r\n \r\n", 1000) + "0\r\n\r\n"),
		},
		"headers": {
			"X : 1\r\n\r\n", "X\x00: 1\r\n\r\n", "X: a\x00b\r\n\r\n", "X: a\rb\r\n\r\n", ": 1\r\n\r\n", "\xff: 1\r\n\r\n", "no colon\r\n\r\n",
			"Host: localhost\r\n\r\n", " X: 1\r\n\r\n", "Content Length: 2\r\n\r\n{}",
		},
	}
	w := newWitness(t)
	c := startSidecar(t, setup{upstreams: []string{w.address}})
	for group, requests := range groups {
		for _, r := range requests {
			t.Run(fmt.Sprintf("%s/%.60q", group, r), func(t *testing.T) {
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
}

func chunked(s string) string { return "Transfer-Encoding: chunked\r\n\r\n" + s }

func TestSmuggledRequestsStayApart(t *testing.T) {
	const suffix = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
	w := newWitness(t)
	c := startSidecar(t, setup{upstreams: []string{w.address}})
	for name, tc := range map[string]struct {
		sent string
		want []string
	}{
		"chunks win over a length": {
			post + "Content-Length: 4\r\n" + chunked("2\r\n{}\r\n0\r\n\r\n"), []string{"POST / {}"},
		},
		"the rest of a body with both is a request of its own, or none": {
			post + fmt.Sprintf("Content-Length: %d\r\n", 10+len(suffix)) + chunked("0\r\n\r\n"+suffix), []string{"POST / ", "GET /smuggled "},
		},
		"a body with a length holds what looks like a request": {
			"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n" + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(suffix)) + suffix,
			[]string{"POST / " + suffix},
		},
		"two requests in a row": {post + "Content-Length: 2\r\n\r\n{}" + suffix, []string{"POST / {}", "GET /smuggled "}},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.connect()
			s.say("%s", tc.sent)
			for range tc.want {
				assert.Equal(t, 200, s.status())
			}
			assert.Equal(t, tc.want, w.take())
		})
	}
}

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
		"no Host":                {"GET / HTTP/1.1\r\n\r\n", []int{400}},
		"two Hosts":              {"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", []int{400}},
		"a malformed Host":       {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", []int{400}},
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
