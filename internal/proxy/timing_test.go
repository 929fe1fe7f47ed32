package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/test/memnet"
	"example.org/pilotfish/test/peer"
)

// memory is a network for bubbles of fake time.
type memory struct{ memnet.Network }

func (m *memory) upstream(t testing.TB, address string, script func(*peer.Peer)) string {
	return peer.Serve(t, m.Listen(address), script)
}

// connect opens a raw connection to the sidecar, and sends a text.
func (m *memory) connect(t testing.TB, sent string) *submitter {
	t.Helper()
	conn, err := m.Dial(t.Context(), "tcp", "127.0.0.1:8080")
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	s := &submitter{Conn: conn, t: t, in: bufio.NewReader(conn)}
	s.say("%s", sent)
	return s
}

// client is a submitter's, over the memory.
func (m *memory) client(t testing.TB) *http.Client {
	tr := &http.Transport{DisableCompression: true, DialContext: m.Dial}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// bubble runs a test in fake time, on a network of pipes.
func bubble(t *testing.T, test func(t *testing.T, m *memory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, new(memory)) })
}

// submit posts a job in a bubble and reads the response up to its end or an error.
func (m *memory) submit(t *testing.T, body string) (status int, text string, h http.Header, err error) {
	t.Helper()
	res, err := m.client(t).Post("http://127.0.0.1:8080/v1/jobs", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	return res.StatusCode, string(got), res.Header, err
}

func TestFirstByteAndDeadline(t *testing.T) {
	hang := func(p *peer.Peer) { p.Request(); p.Gone() }
	quick := func(p *peer.Peer) { p.Request(); p.Say(ok) }
	for name, tc := range map[string]struct {
		job     string
		scripts []func(*peer.Peer)
		status  int
		took    time.Duration
		ended   []pool.Outcome
	}{
		"no timeouts: the configured bound, then one retry": {
			"{}", []func(*peer.Peer){hang, quick}, 200, 5 * time.Minute, []pool.Outcome{pool.TimedOut, pool.Answered},
		},
		"a job that hangs everywhere does not tour them all": {
			"{}", []func(*peer.Peer){hang, hang, quick}, 504, 10 * time.Minute, []pool.Outcome{pool.TimedOut, pool.TimedOut},
		},
		"queue and evaluate bound an attempt, and stream leaves time for another": {
			`{"timeouts":{"queue_seconds":5,"evaluate_seconds":10,"stream_seconds":60}}`,
			[]func(*peer.Peer){hang, quick}, 200, 15 * time.Second, []pool.Outcome{pool.TimedOut, pool.Answered},
		},
		"the deadline ends everything": {
			`{"timeouts":{"queue_seconds":5,"evaluate_seconds":10,"stream_seconds":3}}`,
			[]func(*peer.Peer){hang, hang}, 504, 18 * time.Second, []pool.Outcome{pool.TimedOut, pool.Gone},
		},
		"without a stream timeout it leaves no time for another": {
			`{"timeouts":{"evaluate_seconds":10}}`, []func(*peer.Peer){hang, quick}, 504, 10 * time.Second, []pool.Outcome{pool.TimedOut},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, m *memory) {
				var ups []string
				for i, script := range tc.scripts {
					ups = append(ups, m.upstream(t, "up:"+string(rune('1'+i)), script))
				}
				c := startSidecar(t, setup{network: m, upstreams: ups})
				status, _, h, err := m.submit(t, tc.job)
				require.NoError(t, err)
				assert.Equal(t, tc.status, status)
				r := c.seen(1)[0]
				assert.Equal(t, tc.took, r.Total)
				var ended []pool.Outcome
				why := map[pool.Outcome]error{pool.TimedOut: record.ErrFirstByte, pool.Gone: record.ErrDeadline}
				for _, a := range r.Attempts {
					ended = append(ended, a.Outcome)
					if want := why[a.Outcome]; want != nil {
						require.Contains(t, a.Err, want.Error())
					} else {
						require.Empty(t, a.Err)
					}
				}
				assert.Equal(t, tc.ended, ended)
				if tc.status == 504 {
					assert.Equal(t, "deadline", h.Get("Pilotfish-Reason"))
					assert.Equal(t, intake.Deadline, r.Outcome)
					assert.Equal(t, intake.Absent, r.Completeness)
				}
			})
		})
	}
}

func TestAJobWaitsForAnUpstream(t *testing.T) {
	for name, tc := range map[string]struct {
		job    string
		queue  dispatch.QueueSettings
		status int
		reason string
		took   time.Duration
	}{
		"until the configured wait ends": {"{}", dispatch.DefaultQueue(), 503, "none-eligible", 10 * time.Second},
		"until its own ends":             {`{"timeouts":{"queue_seconds":2}}`, dispatch.DefaultQueue(), 503, "none-eligible", 2 * time.Second},
		"if there is room":               {"{}", dispatch.QueueSettings{Jobs: 1, Bytes: 1, Wait: time.Second}, 503, "queue-full", 0},
		"until its deadline":             {`{"timeouts":{"evaluate_seconds":1,"stream_seconds":1}}`, dispatch.DefaultQueue(), 504, "deadline", 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, m *memory) {
				c := startSidecar(t, setup{network: m, queue: tc.queue})
				status, text, h, _ := m.submit(t, tc.job)
				assert.Equal(t, tc.status, status)
				assert.Equal(t, tc.reason, h.Get("Pilotfish-Reason"))
				assert.Equal(t, "application/problem+json", h.Get("Content-Type"))
				assert.Contains(t, text, `"type":"urn:pilotfish:problem:`+tc.reason+`"`)
				r := c.seen(1)[0]
				assert.Equal(t, tc.took, r.Queued)
				if status == 503 {
					assert.Equal(t, "1", h.Get("Retry-After"))
					assert.Equal(t, intake.Shed, r.Outcome)
				}
			})
		})
	}
}

// The time in the queue is that before each attempt, together.
func TestAJobWaitsTwice(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		refuses := m.upstream(t, "up:1", func(p *peer.Peer) {
			p.Request()
			time.Sleep(time.Second)
			p.Say("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n")
		})
		takes := m.upstream(t, "up:2", func(p *peer.Peer) { p.Request(); p.Say(ok) })
		c := startSidecar(t, setup{network: m, overload: "threshold", upstreams: []string{refuses, takes}})
		c.reports(refuses, 1000)
		c.reports(takes, 1000)
		time.AfterFunc(3*time.Second, func() { c.reports(refuses, 0) })
		time.AfterFunc(6*time.Second, func() { c.reports(takes, 0) })
		status, _, _, _ := m.submit(t, "{}")
		assert.Equal(t, 200, status)
		r := c.seen(1)[0]
		assert.Equal(t, []time.Duration{5 * time.Second, 6 * time.Second}, []time.Duration{r.Queued, r.Total})
	})
}

// The time in which an upstream is asked for the tokens of a prompt is no time at the job's upstream, and none in the queue.
func TestAPromptIsReadBeforeTheFirstAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		settings := intake.Default()
		settings.Project = intake.Places{{Pointer: "/prompt", Blocks: 4}}
		reader, err := intake.NewReader(settings)
		require.NoError(t, err)
		u := m.upstream(t, "up:1", func(p *peer.Peer) { p.Request(); p.Say(ok) })
		c := startSidecar(t, setup{network: m, upstreams: []string{u}, Config: proxy.Config{Config: job.Config{
			Reader: reader, Prompt: func([]byte) *intake.Parts { time.Sleep(3 * time.Second); return nil },
		}}})
		status, _, _, _ := m.submit(t, `{"prompt":"12345678"}`)
		assert.Equal(t, 200, status)
		r := c.seen(1)[0]
		assert.Equal(t, []time.Duration{0, 3 * time.Second, 0}, []time.Duration{r.Queued, r.Attempts[0].Start, r.Attempts[0].FirstByte})
	})
}

// If no upstream is eligible, the submitter of a job that may have started gets no Retry-After.
func TestAJobThatMayHaveBegunIsNotSentAgain(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		dies := m.upstream(t, "up:1", func(p *peer.Peer) { p.Request() })
		c := startSidecar(t, setup{network: m, overload: "threshold", upstreams: []string{dies, "up:2"}})
		c.reports("up:2", 1000)
		status, _, h, _ := m.submit(t, "{}")
		assert.Equal(t, []any{502, "no-response", ""}, []any{status, h.Get("Pilotfish-Reason"), h.Get("Retry-After")})
		assert.Equal(t, 10*time.Second, c.seen(1)[0].Total)
	})
}

// trickle yields a byte each time after a while.
type trickle struct {
	left  int
	piece int
	every time.Duration
}

func (b *trickle) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	time.Sleep(b.every)
	n := min(b.piece, b.left, len(p))
	for i := range n {
		p[i] = ' '
	}
	b.left -= n
	if b.left == 0 {
		copy(p[:n], "{}")
	}
	return n, nil
}

func TestSlowBodies(t *testing.T) {
	for name, tc := range map[string]struct {
		body   *trickle
		status int
	}{
		"1 KiB/s is served":       {&trickle{left: 1 << 20, piece: 1 << 10, every: time.Second}, 200},
		"a pause is served":       {&trickle{left: 4, piece: 2, every: 14 * time.Second}, 200},
		"1 B/s is not":            {&trickle{left: 1000, piece: 1, every: time.Second}, 408},
		"nor is a long silence":   {&trickle{left: 4, piece: 2, every: time.Minute}, 408},
		"nor a byte now and then": {&trickle{left: 1000, piece: 32, every: 10 * time.Second}, 408},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, m *memory) {
				c := startSidecar(t, setup{network: m, upstreams: []string{m.upstream(t, "up:1", func(p *peer.Peer) { p.Request(); p.Say(ok) })}})
				res, err := m.client(t).Post("http://127.0.0.1:8080/", "application/json", tc.body)
				require.NoError(t, err)
				defer res.Body.Close()
				assert.Equal(t, tc.status, res.StatusCode)
				_, _ = io.Copy(io.Discard, res.Body)
				r := c.seen(1)[0]
				if tc.status == 408 {
					assert.Equal(t, "slow-body", r.Reason)
					assert.Empty(t, r.Attempts, "no upstream is claimed during the wait")
					assert.Less(t, r.Total, 45*time.Second)
					time.Sleep(time.Hour) // the submitter's transport wakes up and notices
				}
			})
		})
	}
}

func TestSlowSubmitters(t *testing.T) {
	for name, tc := range map[string]struct {
		pause time.Duration
		whole bool
	}{
		"a slow one gets everything": {4 * time.Minute, true},
		"a stalled one is given up":  {6 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, m *memory) {
				up := m.upstream(t, "up:1", func(p *peer.Peer) {
					p.Request()
					p.Say("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n%s", strings.Repeat("x", 1000000))
				})
				c := startSidecar(t, setup{network: m, upstreams: []string{up}})
				conn := m.connect(t, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
				n := 0
				for buffer := make([]byte, 128<<10); n < 1000000; time.Sleep(tc.pause) {
					m, err := io.ReadFull(conn, buffer)
					if n += m; err != nil {
						break
					}
				}
				assert.Equal(t, tc.whole, n >= 1000000)
				assert.Equal(t, map[bool]intake.Outcome{true: intake.Answered, false: intake.Gone}[tc.whole], c.seen(1)[0].Outcome)
			})
		})
	}
}

// A submitter that does not read 1xx responses does not extend its job's deadline.
func TestInterimResponsesThatNobodyReads(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		up := m.upstream(t, "up:1", func(p *peer.Peer) {
			p.Request()
			p.Say("HTTP/1.1 103 Early Hints\r\n\r\n")
			p.Gone()
		})
		c := startSidecar(t, setup{network: m, upstreams: []string{up}})
		m.connect(t, "").job(`{"timeouts":{"evaluate_seconds":2}}`)
		time.Sleep(time.Minute)
		assert.Equal(t, 2*time.Second, c.seen(1)[0].Total)
	})
}

// A slow upload is not the upstream's fault: the time to the first byte starts when the upstream has taken the request, and
// an upstream that takes a large body slowly has that time for each piece. One failure would open the breaker here.
func TestTheFirstByteIsDueAfterTheRequest(t *testing.T) {
	const size = 1 << 20
	for name, tc := range map[string]struct {
		budget         int64
		upload, taking time.Duration // between two of 32 pieces
		wait           time.Duration // from the request's end
		status         int
		blamed         bool
	}{
		"a slow submitter":                   {1, 20 * time.Second, 0, 4 * time.Minute, 200, false},
		"and then a slow upstream":           {1, 20 * time.Second, 0, 6 * time.Minute, 504, true},
		"an upstream that reads slowly":      {256 << 20, 0, 20 * time.Second, 4 * time.Minute, 200, false},
		"an upstream that does not":          {256 << 20, 0, 6 * time.Minute, 0, 504, true},
		"an upload that it does not take":    {1, 0, 6 * time.Minute, 0, 504, true},
		"an upload that is too slow for all": {1, 6 * time.Minute, 0, 0, 408, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, m *memory) {
				up := m.upstream(t, "up:1", func(p *peer.Peer) {
					_, _ = p.Head()
					for range 32 {
						time.Sleep(tc.taking)
						if _, err := io.CopyN(io.Discard, p.In, size/32); err != nil {
							return
						}
					}
					time.Sleep(tc.wait)
					p.Say(ok)
				})
				c := startSidecar(t, setup{network: m, upstreams: []string{up}, budget: tc.budget, failures: 1})
				conn, err := m.Dial(t.Context(), "tcp", c.address)
				require.NoError(t, err)
				var uploads sync.WaitGroup
				defer uploads.Wait()
				defer conn.Close()
				uploads.Go(func() {
					_, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", size)
					for i := 0; i < 32 && err == nil; i++ {
						if i > 8 { // beyond what is read before an attempt
							time.Sleep(tc.upload)
						}
						_, err = conn.Write(make([]byte, size/32))
					}
				})
				res, err := http.ReadResponse(bufio.NewReader(conn), nil)
				require.NoError(t, err)
				_ = res.Body.Close()
				assert.Equal(t, tc.status, res.StatusCode)
				c.seen(1)
				assert.Equal(t, tc.blamed, !c.balancer.States()[0].Eligible)
			})
		})
	}
}
