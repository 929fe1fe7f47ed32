package proxy_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
)

// Every way in which an upstream can die within a response is an error for every
// kind of submitter, after a prefix of what the upstream sent and nothing else.
func TestATruncatedAnswerIsNeverACleanEnd(t *testing.T) {
	const piece = "0123456789abcdef"
	long := strings.Repeat(piece, 64<<10)
	answers := map[string]struct{ text, body string }{
		"length":             {"Content-Length: 2097152\r\n\r\n" + long, long},
		"length, no body":    {"Content-Length: 10\r\n\r\n", ""},
		"in a size line":     {"Transfer-Encoding: chunked\r\n\r\n10\r\n" + piece + "\r\n1", piece},
		"in a chunk":         {"Transfer-Encoding: chunked\r\n\r\n10\r\n" + piece + "\r\n10\r\n01234567", piece + "01234567"},
		"before last chunk":  {"Transfer-Encoding: chunked\r\n\r\n10\r\n" + piece + "\r\n", piece},
		"before last CRLF":   {"Transfer-Encoding: chunked\r\n\r\n10\r\n" + piece + "\r\n0\r\n", piece},
		"in a trailer":       {"Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n10\r\n" + piece + "\r\n0\r\nX: 1", piece},
		"until the end":      {"\r\n" + piece, piece}, // which only a reset cuts
		"a broken size line": {"Transfer-Encoding: chunked\r\n\r\n10\r\n" + piece + "\r\nzz\r\nxx", piece},
	}
	endings := map[string]func(*peer){"FIN": func(*peer) {}, "RST": func(p *peer) { p.reset() }}
	submitters := map[string]func(t *testing.T, c *sidecar) (string, error){
		"http/1.1": func(t *testing.T, c *sidecar) (string, error) { return readAll(t, client(t), c) },
		"h2c":      func(t *testing.T, c *sidecar) (string, error) { return readAll(t, h2c(t), c) },
		"http/1.0": func(t *testing.T, c *sidecar) (string, error) {
			s := c.connect()
			s.say("GET / HTTP/1.0\r\n\r\n")
			_, answer := s.response()
			body, err := io.ReadAll(answer)
			return string(body), err
		},
	}
	for answer, a := range answers {
		for ending, end := range endings {
			if answer == "until the end" && ending == "FIN" {
				continue
			}
			up := scripted(t, func(p *peer) {
				p.request()
				p.say("HTTP/1.1 200 OK\r\n%s", a.text)
				if ending == "RST" {
					drained(t, p.Conn.(*net.TCPConn))
				}
				end(p)
			})
			for submitter, submit := range submitters {
				t.Run(answer+", "+ending+", "+submitter, func(t *testing.T) {
					c := startSidecar(t, setup{upstreams: []string{up.address, up.address + "0"}})
					got, err := submit(t, c)
					require.Error(t, err)
					assert.True(t, strings.HasPrefix(a.body, got), "nothing is appended")
					r := c.seen(1)[0]
					require.Len(t, r.Attempts, 1, "nothing is retried after a response byte")
					assert.Equal(t, pool.Truncated, r.Attempts[0].Outcome)
					assert.Equal(t, intake.Truncated, r.Outcome)
					assert.Equal(t, intake.Partial, r.Completeness)
				})
			}
		}
	}
}

func readAll(t *testing.T, c *http.Client, s *sidecar) (string, error) {
	res, err := c.Get(s.url("/"))
	require.NoError(t, err)
	defer res.Body.Close()
	assert.Equal(t, 200, res.StatusCode)
	body, err := io.ReadAll(res.Body)
	return string(body), err
}
