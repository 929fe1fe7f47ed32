package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/proxy"
)

func TestWebPagesAndTunnelsAreRefused(t *testing.T) {
	w := newWitness(t)
	c := startSidecar(t, setup{upstreams: []string{w.address}, Config: proxy.Config{Hosts: []string{"Sidecar"}}})
	for name, tc := range map[string]struct {
		request string
		status  int
		reason  string
	}{
		"an evil Host":        {"POST / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\n\r\n{}", 403, "foreign-host"},
		"a rebound Host":      {"POST / HTTP/1.1\r\nHost: evil.example:8080\r\nContent-Length: 2\r\n\r\n{}", 403, "foreign-host"},
		"another address":     {"GET / HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n", 403, "foreign-host"},
		"localhost's cousin":  {"GET / HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n", 403, "foreign-host"},
		"an Origin":           {post + "Origin: http://evil.example\r\nContent-Length: 2\r\n\r\n{}", 403, "cross-site"},
		"a null Origin":       {post + "Origin: null\r\nContent-Length: 2\r\n\r\n{}", 403, "cross-site"},
		"an empty Origin":     {post + "Origin:\r\nContent-Length: 2\r\n\r\n{}", 403, "cross-site"},
		"a simple cross-site": {post + "Sec-Fetch-Site: cross-site\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", 403, "cross-site"},
		"same-site":           {"GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-site\r\n\r\n", 403, "cross-site"},
		"CONNECT":             {"CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n", 405, "method-refused"},
		"TRACE":               {"TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "method-refused"},
		"a WebSocket":         {"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 501, "upgrade-refused"},
		"two upgrades":        {"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c, websocket\r\n\r\n", 501, "upgrade-refused"},

		"localhost":       {"GET /1 HTTP/1.1\r\nHost: LocalHost:1\r\n\r\n", 200, ""},
		"loopback":        {"GET /2 HTTP/1.1\r\nHost: 127.9.9.9\r\n\r\n", 200, ""},
		"loopback 6":      {"GET /3 HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", 200, ""},
		"a bare 6":        {"GET /4 HTTP/1.1\r\nHost: [::1]\r\n\r\n", 200, ""},
		"configured":      {"GET /5 HTTP/1.1\r\nHost: sidecar:8080\r\n\r\n", 200, ""},
		"the address bar": {"GET /6 HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: none\r\n\r\n", 200, ""},
		"HTTP/1.0":        {"GET /7 HTTP/1.0\r\n\r\n", 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.connect()
			s.say("%s", tc.request)
			res, _ := s.response()
			assert.Equal(t, tc.status, res.StatusCode)
			assert.Equal(t, tc.reason, res.Header.Get("Pilotfish-Reason"))
			if tc.status != 200 {
				assert.Empty(t, w.take(), "nothing reaches an upstream")
			} else {
				assert.Len(t, w.take(), 1)
			}
		})
	}
}

func TestGuardBeforeAnotherHandler(t *testing.T) {
	inner := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	for hosts, want := range map[string]int{"": 403, "other": 403, "evil.example": 204, "*": 204} {
		h := proxy.NewGuard([]string{hosts}).Wrap(inner)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "http://evil.example/metrics", nil))
		assert.Equal(t, want, w.Code, hosts)
		assert.Equal(t, want == 403, strings.Contains(w.Body.String(), "under the key hosts"), "it tells what allows the name")
	}
}

// What the sidecar shows of itself is on another port; this one has no
// handlers of its own.
func TestTheJobPortHasNoPagesOfItsOwn(t *testing.T) {
	w := newWitness(t)
	c := startSidecar(t, setup{upstreams: []string{w.address}})
	for _, path := range []string{"/metrics", "/debug/pprof/", "/healthz", "/readyz", "/api/upstreams"} {
		for _, target := range []string{path, "http://localhost" + path} {
			s := c.connect()
			s.say("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", target)
			assert.Equal(t, 200, s.status())
			assert.Equal(t, []string{"GET " + path + " "}, w.take())
		}
	}
}
