package proxy_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/test/peer"
)

// jobOf makes a job of n bytes; one byte cannot be a job, but is passed on.
func jobOf(n int) (body, contentType string) {
	if n < 20 {
		return strings.Repeat("x", n), "text/plain"
	}
	frame := `{"project_id":7,"x":""}`
	return frame[:len(frame)-2] + strings.Repeat("a", n-len(frame)) + `"}`, "application/json"
}

// unsized hides a body's length, so that it is sent in chunks.
type unsized struct{ io.Reader }

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return fmt.Sprintf("%x", sum[:16])
}

func TestResponsesPassWhole(t *testing.T) {
	for _, n := range []int{0, 1, 64 << 10, 64 << 20} {
		for _, sized := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d bytes, length %t", n, sized), func(t *testing.T) {
				content := func() io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{}), int64(n)) }
				up := serving(t, func(w http.ResponseWriter, _ *http.Request) {
					if sized {
						w.Header().Set("Content-Length", fmt.Sprint(n))
					}
					w.WriteHeader(200)
					_ = http.NewResponseController(w).Flush()
					_, _ = io.Copy(w, content())
				})
				c := startSidecar(t, setup{upstreams: []string{up}})
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				res, err := client(t).Post(c.url("/"), "application/json", reader("{}"))
				require.NoError(t, err)
				defer res.Body.Close()
				got, want := sha256.New(), sha256.New()
				_, err = io.Copy(got, res.Body)
				require.NoError(t, err)
				runtime.ReadMemStats(&after)
				_, _ = io.Copy(want, content())
				assert.Equal(t, want.Sum(nil), got.Sum(nil))
				assert.Equal(t, sized, res.ContentLength >= 0, "framing keeps its meaning")
				assert.EqualValues(t, n, c.seen(1)[0].Bytes)
				assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20), "a response is not kept") // with the race detector, a pool drops buffers
			})
		}
	}
}

// Trailers are forwarded with a response, and with a kept response that is forwarded after the attempts.
func TestTrailers(t *testing.T) {
	var got *peer.Request
	const chunks = "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n"
	up := peer.Listen(t, func(p *peer.Peer) {
		for r := p.Request(); r != nil; r = p.Request() {
			got = r
			head := map[string]string{"/": "200 OK", "/refused": "503 No\r\nRetry-After: 1"}[got.URL.Path]
			p.Say("HTTP/1.1 %s\r\n%sEndpoint-Load-Metrics: TEXT named_metrics.running=3\r\n\r\n", head, chunks)
		}
	})
	c := startSidecar(t, setup{upstreams: []string{up}})
	for path, submit := range map[string]func(testing.TB) *http.Client{"/": client, "/?h2c": h2c, "/refused": client} {
		t.Run(path, func(t *testing.T) {
			r, err := http.NewRequest("POST", c.url(path), unsized{reader("{}")})
			require.NoError(t, err)
			r.Trailer = http.Header{"X-Mine": {"3"}}
			res, err := submit(t).Do(r)
			require.NoError(t, err)
			defer res.Body.Close()
			assert.Contains(t, res.Trailer, "X-Sum", "announced trailers are announced")
			_, err = io.Copy(io.Discard, res.Body)
			require.NoError(t, err)
			assert.Equal(t, http.Header{"X-Sum": {"1"}, "Endpoint-Load-Metrics": {"TEXT named_metrics.running=3"}}, res.Trailer)
			assert.Empty(t, got.Trailer, "those of a request do not pass")
			assert.Equal(t, "{}", got.Text)
		})
	}
	for _, r := range c.seen(3) {
		if r.Path == "/refused" {
			continue
		}
		require.NotNil(t, r.Attempts[0].Hint, "the load report in the trailers is read")
		assert.InDelta(t, 3, r.Attempts[0].Hint.Running[selection.Low], 0)
	}
}

func h2c(t testing.TB) *http.Client {
	tr := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true, DialContext: dial}
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func TestOldSubmitters(t *testing.T) {
	for name, answer := range map[string]string{
		"length":  "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody",
		"chunked": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
		"closing": "HTTP/1.0 200 OK\r\n\r\nbody",
		"interim": "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", // which HTTP/1.0 does not know
	} {
		t.Run(name, func(t *testing.T) {
			up := peer.Listen(t, func(p *peer.Peer) { p.Request(); p.Say("%s", answer) })
			c := startSidecar(t, setup{upstreams: []string{up}})
			s := c.connect()
			s.say("GET / HTTP/1.0\r\n\r\n")
			text, err := s.rest()
			require.NoError(t, err)
			head, body, _ := strings.Cut(text, "\r\n\r\n")
			assert.Equal(t, "body", body)
			assert.Contains(t, head, " 200 ")
			assert.NotContains(t, head, "chunked")
			assert.Equal(t, name == "closing", c.seen(1)[0].Unframed, "counted, but complete as far as can be known")
		})
	}
}

// Over HTTP/1, the heads of requests and responses pass with the order and the spelling of their fields, and the reason
// phrase of a response too. Only hop-by-hop fields are dropped, and a Trailer that announces none.
func TestHeadsPassAsTheyWereReceived(t *testing.T) {
	const id = "x-request-ID: 7\r\n"
	long := "x-long: " + strings.Repeat("y", 6000) + "\r\n"
	var response string
	heads := make(chan string, 1)
	up := peer.Listen(t, func(p *peer.Peer) {
		for {
			head, err := p.Head()
			if err != nil {
				return
			}
			heads <- head
			if strings.Contains(head, "ontent-Length: 2") {
				_, _ = p.In.Discard(2)
			}
			p.Say("%s", response)
		}
	})
	c := startSidecar(t, setup{upstreams: []string{up}})
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
		up := m.upstream(t, "up:1", func(p *peer.Peer) {
			p.Request()
			p.Say("%s", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 564)+ok)
		})
		startSidecar(t, setup{network: m, upstreams: []string{up}})
		started := time.Now()
		text, err := m.connect(t, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").rest()
		require.NoError(t, err)
		assert.Equal(t, 564, strings.Count(text, "HTTP/1.1 103 "))
		assert.Equal(t, 500*time.Millisecond, time.Since(started))
	})
}
