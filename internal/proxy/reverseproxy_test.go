package proxy_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The cases that other people's reverse proxies are tested with, as far as they
// apply here and are not in the tests beside this one.

// What a submitter sends reaches the upstream, but for what concerns its own
// connection. Nothing is added.
func TestRequestHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		sent string // the lines between Host and the end
		want http.Header
	}{
		"none":                          {"", http.Header{}},
		"an empty User-Agent":           {"User-Agent:\r\n", http.Header{"User-Agent": {""}}},
		"an empty value":                {"X-A:\r\n", http.Header{"X-A": {""}}},
		"several of a name":             {"X-A: 1\r\nX-B: 0\r\nX-A: 2\r\nx-a: 3\r\n", http.Header{"X-A": {"1", "2", "3"}, "X-B": {"0"}}},
		"several cookies":               {"Cookie: a=1\r\nCookie: b=2\r\n", http.Header{"Cookie": {"a=1", "b=2"}}},
		"a chain of proxies":            {"X-Forwarded-For: 1.1.1.1, 2.2.2.2\r\nX-Forwarded-For: 3.3.3.3\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: a\r\n", http.Header{"X-Forwarded-For": {"1.1.1.1, 2.2.2.2", "3.3.3.3"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"a"}}},
		"a chain by RFC 7239":           {"Forwarded: for=1.1.1.1\r\nVia: 1.1 a\r\n", http.Header{"Forwarded": {"for=1.1.1.1"}, "Via": {"1.1 a"}}},
		"who it is":                     {"Authorization: Bearer x\r\n", http.Header{"Authorization": {"Bearer x"}}},
		"codings":                       {"Accept-Encoding: br, gzip\r\n", http.Header{"Accept-Encoding": {"br, gzip"}}},
		"a long value":                  {"X-A: " + strings.Repeat("a", 20_000) + "\r\n", http.Header{"X-A": {strings.Repeat("a", 20_000)}}},
		"of the connection":             {"Connection: keep-alive\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nProxy-Authenticate: x\r\nProxy-Authorization: x\r\nTE: deflate\r\n", http.Header{}},
		"what Connection names":         {"Connection: X-A\r\nX-A: 1\r\nX-B: 2\r\n", http.Header{"X-B": {"2"}}},
		"what it names, oddly":          {"Connection: ,x-a ,,\t X-B,\r\nconnection: keep-alive,X-c\r\nX-A: 1\r\nX-B: 2\r\nX-C: 3\r\nX-D: 4\r\n", http.Header{"X-D": {"4"}}},
		"what it names, and is not":     {"Connection: X-A\r\n", http.Header{}},
		"an empty Connection":           {"Connection:\r\nX-A: 1\r\n", http.Header{"X-A": {"1"}}},
		"Connection names a real one":   {"Connection: Authorization\r\nAuthorization: Bearer x\r\n", http.Header{}},
		"the trailers of the other end": {"Connection: TE\r\nTE: trailers\r\n", http.Header{"Te": {"trailers"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got *received
			up := scripted(t, func(p *peer) {
				for r := p.request(); r != nil; r = p.request() {
					got = r
					p.say(ok)
				}
			})
			side := startSidecar(t, setup{upstreams: []string{up.address}})
			for method, body := range map[string]string{"POST": "{}", "GET": ""} {
				s := side.connect()
				length := ""
				c.want.Del("Content-Length")
				if body != "" {
					length = "Content-Length: 2\r\n"
					c.want.Set("Content-Length", "2")
				}
				s.say("%s / HTTP/1.1\r\nHost: localhost\r\n%s%s\r\n%s", method, c.sent, length, body)
				require.Equal(t, 200, s.status())
				got.Header.Del("X-Request-Id")
				assert.Equal(t, c.want, got.Header, method)
				assert.Equal(t, body, string(got.body))
			}
		})
	}
}

// What an upstream answers reaches the submitter, but for what concerns the
// upstream's own connection. Nothing is added, and nothing is acted on.
func TestResponseHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		head   string // after "HTTP/1.1 "
		status int
		want   http.Header
	}{
		"none":                        {"200 OK\r\n", 200, http.Header{}},
		"its own date and name":       {"200 OK\r\nDate: Mon, 01 Jan 2001 00:00:00 GMT\r\nServer: mine\r\n", 200, http.Header{"Date": {"Mon, 01 Jan 2001 00:00:00 GMT"}, "Server": {"mine"}}},
		"an empty value":              {"200 OK\r\nX-A:\r\n", 200, http.Header{"X-A": {""}}},
		"several of a name":           {"200 OK\r\nSet-Cookie: a=1\r\nX-A: 0\r\nset-cookie: b=2\r\n", 200, http.Header{"Set-Cookie": {"a=1", "b=2"}, "X-A": {"0"}}},
		"a redirect is not followed":  {"302 Found\r\nLocation: http://elsewhere.example/x\r\n", 302, http.Header{"Location": {"http://elsewhere.example/x"}}},
		"a refusal":                   {"401 Unauthorized\r\nWWW-Authenticate: Basic\r\n", 401, http.Header{"Www-Authenticate": {"Basic"}}},
		"an unusual status":           {"451 Unavailable\r\n", 451, http.Header{}},
		"an error":                    {"500 Internal Server Error\r\nX-A: 1\r\n", 500, http.Header{"X-A": {"1"}}},
		"of the connection":           {"200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nProxy-Connection: x\r\nProxy-Authenticate: x\r\nUpgrade: h2c\r\nTE: x\r\n", 200, http.Header{}},
		"what Connection names":       {"200 OK\r\nConnection: X-A, ,x-b\r\nConnection: X-C\r\nX-A: 1\r\nX-B: 2\r\nX-C: 3\r\nX-D: 4\r\n", 200, http.Header{"X-D": {"4"}}},
		"an empty Connection":         {"200 OK\r\nConnection:\r\nX-A: 1\r\n", 200, http.Header{"X-A": {"1"}}},
		"the end of its connection":   {"200 OK\r\nConnection: close\r\n", 200, http.Header{}},
		"an upgrade nobody asked for": {"101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n", 502, nil},
	} {
		t.Run(name, func(t *testing.T) {
			up := scripted(t, func(p *peer) {
				for p.request() != nil {
					p.say("HTTP/1.1 %sContent-Length: 2\r\n\r\nok", c.head)
					if strings.Contains(c.head, "close") {
						return
					}
				}
			})
			side := startSidecar(t, setup{upstreams: []string{up.address}, retries: 0.01})
			for proto, submit := range map[string]*http.Client{"HTTP/1.1": client(t), "HTTP/2.0": h2c(t)} {
				submit.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
				for range 2 { // the submitter's connection goes on
					res, err := submit.Post(side.url("/"), "application/json", reader("{}"))
					require.NoError(t, err)
					text, err := io.ReadAll(res.Body)
					require.NoError(t, err)
					require.NoError(t, res.Body.Close())
					assert.Equal(t, proto, res.Proto)
					assert.Equal(t, c.status, res.StatusCode)
					if c.want == nil {
						assert.Equal(t, "no-answer", res.Header.Get("Pilotfish-Reason"))
						continue
					}
					assert.Equal(t, "ok", string(text))
					assert.Equal(t, "2", res.Header.Get("Content-Length"))
					res.Header.Del("Content-Length")
					res.Header.Del("X-Request-Id")
					assert.Equal(t, c.want, res.Header)
				}
			}
		})
	}
}
