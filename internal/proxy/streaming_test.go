package proxy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/test/peer"
)

// Each piece is written only once the one before has been read at the far
// end, so that holding any back would stop everything.
func TestEachPieceComesAtOnce(t *testing.T) {
	for name, tc := range map[string]struct{ head, before, after string }{
		"chunked": {"Transfer-Encoding: chunked\r\n", "5\r\n", "\r\n"},
		"length":  {"Content-Length: 1000\r\n", "", ""},
		"closing": {"Connection: close\r\n", "", ""},
	} {
		for submitter, open := range submitters {
			t.Run(name+" "+submitter, func(t *testing.T) {
				const pieces = 200
				confirmed := make(chan bool)
				up := peer.Listen(t, func(p *peer.Peer) {
					p.Request()
					p.Say("HTTP/1.1 200 OK\r\n%s\r\n", tc.head)
					for range pieces {
						if !<-confirmed {
							return
						}
						p.Say("%sline\n%s", tc.before, tc.after)
					}
					if tc.before != "" {
						p.Say("0\r\n\r\n")
					}
				})
				c := startSidecar(t, setup{upstreams: []string{refusing(t), up}})
				defer close(confirmed)
				in := bufio.NewReader(open(t, c, "/")) // the head comes before any of the body
				for range pieces {
					confirmed <- true
					line, err := in.ReadString('\n')
					require.NoError(t, err)
					require.Equal(t, "line\n", line)
				}
				_, err := in.ReadByte()
				require.Error(t, err)
			})
		}
	}
}

// A response can pause for three hours, or up to the job's stream timeout, also within a chunk or before the end. It holds no
// memory for the body of its request.
func TestSilenceAmidAResponse(t *testing.T) {
	length := [2]string{"Content-Length: 8\r\n\r\nhalf", "half"}
	chunk := [2]string{"Transfer-Encoding: chunked\r\n\r\n8\r\nhalf", "half\r\n0\r\n\r\n"}
	trailer := [2]string{"Transfer-Encoding: chunked\r\n\r\n8\r\nhalfhalf\r\n0\r\n", "A: b\r\n\r\n"}
	for _, tc := range []struct {
		job     string
		said    [2]string // before the silence and after it
		silence time.Duration
		cut     time.Duration // 0: not cut
		outcome pool.Outcome
	}{
		{"{}", length, 2 * time.Hour, 0, pool.Answered},
		{"{}", chunk, 2 * time.Hour, 0, pool.Answered},
		{"{}", trailer, 2 * time.Hour, 0, pool.Answered},
		{"{}", length, 4 * time.Hour, 3 * time.Hour, pool.Truncated},
		{`{"timeouts":{"queue_seconds":1,"evaluate_seconds":1}}`, length, 2 * time.Hour, 0, pool.Answered},
		{`{"timeouts":{"stream_seconds":20000}}`, length, 4 * time.Hour, 3 * time.Hour, pool.Truncated},
		{`{"timeouts":{"stream_seconds":60}}`, length, 59 * time.Second, 0, pool.Answered},
		{`{"timeouts":{"stream_seconds":60}}`, length, 61 * time.Second, time.Minute, pool.Gone},
	} {
		bubble(t, func(t *testing.T, m *memory) {
			var c *sidecar
			c = startSidecar(t, setup{network: m, upstreams: []string{m.upstream(t, "up:1", func(p *peer.Peer) {
				p.Request()
				assert.Positive(t, c.budget.Used())
				p.Say("HTTP/1.1 200 OK\r\n%s", tc.said[0])
				time.Sleep(tc.silence)
				assert.Zero(t, c.budget.Used(), "the memory of the body is free for other jobs")
				p.Say("%s", tc.said[1])
			})}})
			_, text, _, err := m.submit(t, tc.job)
			r := c.seen(1)[0]
			assert.Equal(t, tc.outcome, r.Attempts[0].Outcome)
			if tc.cut == 0 {
				require.NoError(t, err)
				assert.Equal(t, "halfhalf", text)
				assert.Equal(t, tc.silence, r.Total)
				return
			}
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			assert.Equal(t, "half", text)
			assert.Equal(t, tc.cut, r.Total)
			assert.Equal(t, intake.Partial, r.Completeness)
		})
	}
}

// submitters submit a job and return the body of its response, which has begun.
var submitters = map[string]func(t *testing.T, c *sidecar, path string) (body io.Reader){
	"http/1.1": func(t *testing.T, c *sidecar, path string) io.Reader { return get(t, client(t), c.url(path)) },
	"h2c":      func(t *testing.T, c *sidecar, path string) io.Reader { return get(t, h2c(t), c.url(path)) },
	"http/1.0": func(_ *testing.T, c *sidecar, path string) io.Reader {
		s := c.connect()
		s.say("GET %s HTTP/1.0\r\n\r\n", path)
		_, body := s.response()
		return body
	},
}

func get(t *testing.T, by *http.Client, url string) (body io.Reader) {
	res, err := by.Get(url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	assert.Equal(t, 200, res.StatusCode)
	return res.Body
}

// Every way in which an upstream can die within a response is an error for every
// kind of submitter, after a prefix of what the upstream sent and nothing else.
func TestATruncatedResponseIsNeverACleanEnd(t *testing.T) {
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
	endings := map[string]func(*peer.Peer){"FIN": func(*peer.Peer) {}, "RST": func(p *peer.Peer) { p.Reset() }}
	for answer, a := range answers {
		for ending, end := range endings {
			if answer == "until the end" && ending == "FIN" {
				continue
			}
			up := peer.Listen(t, func(p *peer.Peer) {
				p.Request()
				p.Say("HTTP/1.1 200 OK\r\n%s", a.text)
				if ending == "RST" {
					drained(t, p.Conn.(*net.TCPConn))
				}
				end(p)
			})
			for submitter, open := range submitters {
				t.Run(answer+", "+ending+", "+submitter, func(t *testing.T) {
					c := startSidecar(t, setup{upstreams: []string{up, up + "0"}})
					got, err := io.ReadAll(open(t, c, "/"))
					require.Error(t, err)
					assert.True(t, strings.HasPrefix(a.body, string(got)), "nothing is appended")
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
