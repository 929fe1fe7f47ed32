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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
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

func TestBodiesArriveWholeAfterARetry(t *testing.T) {
	var head *received
	up := scripted(t, func(p *peer) {
		for r := p.request(); r != nil; r = p.request() {
			head = r
			p.say("HTTP/1.1 200 OK\r\nContent-Length: 32\r\n\r\n%s", digest(string(r.body)))
		}
	})
	for _, n := range []int{1, 1 << 10, 16<<10 + 1, 64<<10 + 1, 1<<20 + 1, 8 << 20} {
		body, contentType := jobOf(n)
		for _, sized := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d bytes, length %t", n, sized), func(t *testing.T) {
				c := startSidecar(t, setup{upstreams: []string{refusing(t), up.address}})
				_, got := c.postAs(contentType, body, sized)
				assert.Equal(t, digest(body), got)
				assert.EqualValues(t, n, head.ContentLength)
				assert.Empty(t, head.TransferEncoding)
				assert.Equal(t, 1, strings.Count(head.head, "\nContent-Length:"))
				assert.Len(t, c.seen(1)[0].Attempts, 2)
			})
		}
	}
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return fmt.Sprintf("%x", sum[:16])
}

func TestAnswersPassWhole(t *testing.T) {
	for _, n := range []int{0, 1, 64 << 10, 64 << 20} {
		for _, sized := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d bytes, length %t", n, sized), func(t *testing.T) {
				sum := make(chan [32]byte, 1)
				up := serving(t, func(w http.ResponseWriter, _ *http.Request) {
					if sized {
						w.Header().Set("Content-Length", fmt.Sprint(n))
					}
					w.WriteHeader(200)
					_ = http.NewResponseController(w).Flush()
					h := sha256.New()
					_, _ = io.CopyN(io.MultiWriter(w, h), rand.NewChaCha8([32]byte{}), int64(n))
					sum <- [32]byte(h.Sum(nil))
				})
				c := startSidecar(t, setup{upstreams: []string{up}})
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				res, err := client(t).Post(c.url("/"), "application/json", reader("{}"))
				require.NoError(t, err)
				defer res.Body.Close()
				h := sha256.New()
				got, err := io.Copy(h, res.Body)
				require.NoError(t, err)
				runtime.ReadMemStats(&after)
				assert.EqualValues(t, n, got)
				assert.Equal(t, <-sum, [32]byte(h.Sum(nil)))
				assert.Equal(t, sized, res.ContentLength >= 0, "framing keeps its meaning")
				assert.EqualValues(t, n, c.seen(1)[0].Bytes)
				assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20), "an answer is not kept")
			})
		}
	}
}

// Trailers are forwarded with a response, and with a kept response that is forwarded after the attempts.
func TestTrailers(t *testing.T) {
	var got *received
	const chunks = "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n"
	up := scripted(t, func(p *peer) {
		for r := p.request(); r != nil; r = p.request() {
			got = r
			head := map[string]string{"/": "200 OK", "/refused": "503 No\r\nRetry-After: 1"}[got.URL.Path]
			p.say("HTTP/1.1 %s\r\n%sEndpoint-Load-Metrics: TEXT named_metrics.running=3\r\n\r\n", head, chunks)
		}
	})
	c := startSidecar(t, setup{upstreams: []string{up.address}})
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
			assert.Equal(t, "{}", string(got.body))
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
			up := scripted(t, func(p *peer) { p.request(); p.say("%s", answer) })
			c := startSidecar(t, setup{upstreams: []string{up.address}})
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
