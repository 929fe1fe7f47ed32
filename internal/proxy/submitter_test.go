package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/test/peer"
)

// Whenever a submitter disconnects, by FIN or reset, the upstream's request is
// aborted, the lease ends, nothing is retried, and no breaker counts a failure: one would open it here.
func TestASubmitterThatLeaves(t *testing.T) {
	overTCP := func(end func(*net.TCPConn) error) func(t *testing.T, c *sidecar, begun func() bool) {
		return func(t *testing.T, c *sidecar, begun func() bool) {
			s := c.connect()
			s.job("{}")
			if begun() {
				_, body := s.response()
				_, err := io.ReadFull(body, make([]byte, 4))
				require.NoError(t, err)
			}
			require.NoError(t, end(s.tcp()))
		}
	}
	for how, leave := range map[string]func(t *testing.T, c *sidecar, begun func() bool){
		"FIN":          overTCP((*net.TCPConn).Close),
		"half-closing": overTCP((*net.TCPConn).CloseWrite),
		"RST": overTCP(func(c *net.TCPConn) error {
			_ = c.SetLinger(0)
			return c.Close()
		}),
		"h2c": func(t *testing.T, c *sidecar, begun func() bool) {
			f := frames(t, c.connect(), true, "GET", "/", "localhost")
			for waits := begun(); waits; {
				frame, err := f.ReadFrame()
				require.NoError(t, err)
				_, data := frame.(*http2.DataFrame)
				waits = !data
			}
			require.NoError(t, f.WriteRSTStream(1, http2.ErrCodeCancel))
		},
	} {
		for when, head := range map[string]string{
			"before the answer": "",
			"within the body":   "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome",
			"within the chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n",
		} {
			t.Run(how+" "+when, func(t *testing.T) {
				reached, aborted := make(chan struct{}), make(chan struct{})
				up := peer.Listen(t, func(p *peer.Peer) {
					p.Request()
					p.Say("%s", head)
					close(reached)
					p.Gone()
					close(aborted)
				})
				c := startSidecar(t, setup{upstreams: []string{up, refusing(t)}, failures: 1})
				leave(t, c, func() bool {
					<-reached
					return head != ""
				})
				<-aborted
				r := c.seen(1)[0]
				assert.Equal(t, intake.Gone, r.Outcome)
				require.Len(t, r.Attempts, 1)
				assert.Equal(t, pool.Gone, r.Attempts[0].Outcome)
				if head == "" {
					assert.Equal(t, []any{499, "submitter-gone", intake.Absent}, []any{r.Status, r.Reason, r.Completeness})
				} else {
					assert.Equal(t, []any{200, intake.Partial}, []any{r.Status, r.Completeness})
				}
				assert.True(t, c.balancer.States()[0].Eligible)
			})
		}
	}
}

func TestAnUploadThatIsAbandonedReachesNoUpstream(t *testing.T) {
	w := newListener(t)
	for _, budget := range []int64{0, 1} { // kept whole, or streamed
		c := startSidecar(t, setup{upstreams: []string{w.address}, budget: budget})
		body, _ := jobOf(1 << 20)
		for i, sent := range []string{
			"Content-Length: 1048576\r\n\r\n" + body[:1<<19],
			"Content-Length: 1048576\r\n\r\n" + body[:1<<10],
			"Transfer-Encoding: chunked\r\n\r\n80000\r\n" + body[:1<<19] + "\r\n",
			"Transfer-Encoding: chunked\r\n\r\n80000\r\n" + body[:1<<18],
		} {
			s := c.connect()
			s.say("%s%s", post, sent)
			_ = s.Close()
			r := c.seen(i + 1)[i]
			assert.Equal(t, intake.Gone, r.Outcome)
			assert.Equal(t, 499, r.Status)
		}
		assert.Empty(t, w.take())
	}
}

func TestSlowHeadsAndIdleConnectionsAreClosed(t *testing.T) {
	for name, sent := range map[string]io.Reader{
		"nothing":           reader(""),
		"half a head":       reader("POST / HTTP/1.1\r\nHost: local"),
		"half a long head":  reader("POST / HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("X: y\r\n", 4000)),
		"half a preface":    reader("PRI * HTTP/2.0\r\n\r\nS"),
		"idle after a job":  reader("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		"a head, drop-wise": io.MultiReader(reader("GET /"), &trickle{left: 3600, piece: 1, every: time.Second}),
	} {
		bubbleOf(t, name, func(t *testing.T, m *memory) {
			up := m.upstream(t, "up:1", func(p *peer.Peer) { p.Request(); p.Say(ok) })
			startSidecar(t, setup{network: m, upstreams: []string{up}})
			conn, started := m.connect(t, ""), time.Now()
			var writing sync.WaitGroup
			writing.Go(func() { _, _ = io.Copy(conn, sent) })
			_, _ = io.Copy(io.Discard, conn)
			writing.Wait()
			assert.LessOrEqual(t, time.Since(started), 2*time.Minute+time.Second)
		})
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	up := answering(t, ok)
	c := startSidecar(t, setup{upstreams: []string{up}, server: proxy.ServerConfig{Conns: 2}})
	first, second, third := c.connect(), c.connect(), c.connect()
	for _, s := range []*submitter{first, second} {
		s.job("{}")
		assert.Equal(t, 200, s.status())
	}
	third.job("{}")
	first.job("{}")
	assert.Equal(t, 200, first.status())
	assert.Len(t, c.seen(3), 3, "the third waits to be accepted")
	_ = first.Close()
	assert.Equal(t, 200, third.status())
}

// submitter is a raw connection to a sidecar.
type submitter struct {
	net.Conn
	t  testing.TB
	in *bufio.Reader
}

func (c *sidecar) connect() *submitter {
	c.t.Helper()
	return connectTo(c.t, c.address)
}

func connectTo(t testing.TB, address string) *submitter {
	t.Helper()
	conn, err := dial(t.Context(), "tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &submitter{Conn: conn, t: t, in: bufio.NewReader(conn)}
}

// tcp is the connection as it is.
func (s *submitter) tcp() *net.TCPConn { return s.Conn.(patient).Conn.(*net.TCPConn) }

// patient is a connection with patience for each read and each write: what they are part of may
// take long on a busy machine.
type patient struct{ net.Conn }

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: patience}
	c, err := dialer.DialContext(ctx, network, address)
	return patient{c}, err
}

func (c patient) Read(p []byte) (int, error) {
	_ = c.SetReadDeadline(time.Now().Add(patience)) // fails only on a closed connection
	return c.Conn.Read(p)
}

func (c patient) Write(p []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(patience)) // as above
	return c.Conn.Write(p)
}

// say writes a text. It ignores errors, because the sidecar can close the connection at any time.
func (s *submitter) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.Conn, format, args...)
}

// job sends a job whole.
func (s *submitter) job(body string) {
	s.say("POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// response reads the head of a response. The body ends at the latest with the connection.
func (s *submitter) response() (head reply, body io.Reader) {
	s.t.Helper()
	res, err := http.ReadResponse(s.in, nil)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = res.Body.Close() })
	return reply{res.StatusCode, res.Header}, res.Body
}

// status reads a response and returns its status, or 0 if the connection ends before it.
func (s *submitter) status() int {
	res, err := http.ReadResponse(s.in, nil)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// rest reads until the connection ends.
func (s *submitter) rest() (string, error) {
	b, err := io.ReadAll(s.in)
	return string(b), err
}
