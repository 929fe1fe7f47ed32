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

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/test/peer"
)

// Whenever a submitter disconnects, by FIN or reset, the upstream's request is
// aborted, the lease ends, nothing is retried, and no breaker counts a failure: one would open it here.
func TestASubmitterThatLeaves(t *testing.T) {
	raw := func(end func(*net.TCPConn) error) func(t *testing.T, c *sidecar, ready func(io.Reader)) {
		return func(t *testing.T, c *sidecar, ready func(io.Reader)) {
			s := c.connect()
			s.job("{}")
			ready(readerFunc(func(p []byte) (int, error) {
				_, answer := s.response()
				return answer.Read(p)
			}))
			require.NoError(t, end(s.tcp()))
		}
	}
	leave := map[string]func(t *testing.T, c *sidecar, ready func(io.Reader)){
		"FIN":          raw((*net.TCPConn).Close),
		"half-closing": raw((*net.TCPConn).CloseWrite),
		"RST": raw(func(c *net.TCPConn) error {
			_ = c.SetLinger(0)
			return c.Close()
		}),
		"h2c": func(t *testing.T, c *sidecar, ready func(io.Reader)) {
			ctx, cancel := context.WithCancel(t.Context())
			r, err := http.NewRequestWithContext(ctx, "POST", c.url("/"), reader("{}"))
			require.NoError(t, err)
			submit := h2c(t)
			ended := make(chan struct{})
			body, sink := io.Pipe()
			go func() {
				defer close(ended)
				if res, err := submit.Do(r); err == nil {
					defer res.Body.Close()
					_, _ = io.Copy(sink, res.Body)
				}
			}()
			ready(body)
			cancel()
			<-ended
		},
	}
	for how, leave := range leave {
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
				leave(t, c, func(answer io.Reader) {
					<-reached
					if head != "" {
						_, err := io.ReadFull(answer, make([]byte, 4))
						require.NoError(t, err)
					}
				})
				<-aborted
				r := c.seen(1)[0]
				assert.Equal(t, intake.Gone, r.Outcome)
				require.Len(t, r.Attempts, 1)
				assert.Equal(t, pool.Gone, r.Attempts[0].Outcome)
				if head == "" {
					assert.Equal(t, 499, r.Status)
					assert.Equal(t, "submitter-gone", r.Reason)
					assert.Equal(t, intake.Absent, r.Completeness)
				} else {
					assert.Equal(t, 200, r.Status)
					assert.Equal(t, intake.Partial, r.Completeness)
				}
				assert.True(t, c.balancer.States()[0].Eligible)
			})
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

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
	for name, sent := range map[string]string{
		"nothing":           "",
		"half a head":       "POST / HTTP/1.1\r\nHost: local",
		"half a long head":  "POST / HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("X: y\r\n", 4000),
		"half a preface":    "PRI * HTTP/2.0\r\n\r\nS",
		"idle after a job":  "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"a head, drop-wise": "drops",
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, m *memory) {
				up := m.upstream(t, "up:1", func(p *peer.Peer) { p.Request(); p.Say(ok) })
				startSidecar(t, setup{network: m, upstreams: []string{up}})
				conn := m.connect(t, "")
				started := time.Now()
				var writing sync.WaitGroup
				writing.Go(func() {
					_, err := io.WriteString(conn, sent)
					for sent == "drops" && err == nil && time.Since(started) < time.Hour {
						_, err = io.WriteString(conn, "X")
						time.Sleep(time.Second)
					}
				})
				_, _ = io.Copy(io.Discard, conn)
				writing.Wait()
				assert.LessOrEqual(t, time.Since(started), 2*time.Minute+time.Second)
			})
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
