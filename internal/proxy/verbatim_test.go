package proxy_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Over HTTP/1.1, both heads pass with their reason phrase, and with the order and the spelling of their fields.
// Only hop-by-hop fields are dropped.
func TestHeadsPassAsTheyWereReceived(t *testing.T) {
	const id = "x-request-ID: 7\r\n"
	long := "x-long: " + strings.Repeat("y", 6000) + "\r\n"
	var response string
	heads := make(chan string, 1)
	up := scripted(t, func(p *peer) {
		for {
			head, err := p.head()
			if err != nil {
				return
			}
			heads <- head
			if strings.Contains(head, "ontent-Length: 2") {
				_, _ = p.in.Discard(2)
			}
			p.say("%s", response)
		}
	})
	c := startSidecar(t, setup{upstreams: []string{up.address}})
	for name, tc := range map[string]struct{ request, response, end string }{
		"plain": {
			"POST /a HTTP/1.1\r\nX-B: 1\r\nhost: localhost\r\n" + id + "x-a: 2\r\nConnection: keep-alive\r\nX-b: 3\r\ncontent-Length: 2\r\nACCEPT: */*\r\n\r\n{}",
			"HTTP/1.1 200 Fine, thanks\r\nset-Cookie: a\r\n" + id + "Z: 1\r\nSet-Cookie: b\r\nConnection: keep-alive\r\ncontent-length: 2\r\nA: 2\r\n\r\n", "ok",
		},
		"left to net/http": {
			"POST /a?b HTTP/1.1\r\nX-B: 1\r\nHost: localhost\r\n" + id + "x-a: 2\r\nTE: gzip\r\nPragma: no-cache\r\nContent-Length: 2\r\n\r\n{}",
			"HTTP/1.1 200 \r\nz: 1\r\n" + id + "Pragma: no-cache\r\nConnection: x-drop, close\r\nx-drop: 1\r\nA: 2\r\nContent-Length: 2\r\nTrailer: Content-Length\r\n\r\n", "ok",
		},
		"chunks": {
			"POST /a HTTP/1.1\r\nX-B: 1\r\nhost: localhost\r\n" + id + "x-a: 2\r\nupgrade: TLS/1.2\r\nContent-Length: 2\r\n\r\n{}",
			"HTTP/1.1 299 Odd\r\nz: 1\r\n" + id + "Transfer-encoding: chunked\r\nA: 2\r\n\r\n", "2\r\nok\r\n0\r\n\r\n",
		},
		"longer than a buffer": {
			"GET /a HTTP/1.1\r\nX-B: 1\r\nhost: localhost\r\n" + id + long + "x-a: 2\r\n\r\n",
			"HTTP/1.1 200 K\r\nz: 1\r\n" + id + long + "content-Length: 2\r\n\r\n", "ok",
		},
		"HEAD": {
			"HEAD /a HTTP/1.1\r\nX-B: 1\r\nhost: localhost\r\n" + id + "\r\n",
			"HTTP/1.1 404 nope\r\nz: 1\r\n" + id + "content-Length: 20\r\nb: 2\r\n\r\n", "",
		},
		"304": {
			"GET /a HTTP/1.1\r\nif-none-match: x\r\nhost: localhost\r\n" + id + "\r\n",
			"HTTP/1.1 304 Same\r\nETag: x\r\n" + id + "content-type: text/csv\r\ncontent-Length: 20\r\n\r\n", "",
		},
		"HTTP/1.0": {
			"POST /a HTTP/1.0\r\nX-B: 1\r\npragma: no-cache\r\nhost: localhost\r\n" + id + "x-a: 2\r\nContent-Length: 2\r\n\r\n{}",
			"HTTP/1.1 203 Mine\r\nz: 1\r\n" + id + "Pragma: no-cache\r\ncontent-Length: 2\r\nA: 2\r\n\r\n", "ok",
		},
		"interim": {
			"GET /a HTTP/1.1\r\nhost: localhost\r\n" + id + "\r\n",
			strings.Repeat("HTTP/1.1 103 Soon\r\nlink: </a>\r\nA: 1\r\nlink: </b>\r\n\r\n", 200) + "HTTP/1.1 200 OK\r\n" + id + "content-Length: 0\r\n\r\n", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			response = tc.response + tc.end
			s := c.connect()
			s.say("%s", tc.request)
			version := strings.Fields(tc.request)[2]
			want := strings.Replace(passing(tc.response)+tc.end, "HTTP/1.1", version, 1)
			got := make([]byte, len(want))
			_, err := io.ReadFull(s.in, got)
			require.NoError(t, err)
			assert.True(t, want == string(got), "%.500s", got)
			sent, _, _ := strings.Cut(tc.request, "\r\n\r\n")
			assert.Equal(t, strings.Replace(passing(sent+"\r\n\r\n"), version, "HTTP/1.1", 1), <-heads)
		})
	}
}

// passing is what passes of a head.
func passing(head string) string {
	var rest strings.Builder
	for line := range strings.Lines(head) {
		switch name, _, _ := strings.Cut(strings.ToLower(line), ":"); name {
		case "connection", "te", "trailer", "upgrade", "x-drop":
		default:
			rest.WriteString(line)
		}
	}
	return rest.String()
}

// Interim responses are limited in their rate: past the first 64, one a millisecond.
func TestInterimResponsesComeAtALimitedRate(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		up := m.upstream(t, "up:1", func(p *peer) {
			p.request()
			p.say("%s", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 564)+ok)
		})
		startSidecar(t, setup{network: m, upstreams: []string{up}})
		conn, err := m.Dial(t.Context(), "tcp", "127.0.0.1:8080")
		require.NoError(t, err)
		defer conn.Close()
		started := time.Now()
		_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		require.NoError(t, err)
		text, err := io.ReadAll(conn)
		require.NoError(t, err)
		assert.Equal(t, 564, strings.Count(string(text), "HTTP/1.1 103 "))
		assert.Equal(t, 500*time.Millisecond, time.Since(started))
	})
}
