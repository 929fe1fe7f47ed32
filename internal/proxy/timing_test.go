package proxy_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
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

// h2c is client over HTTP/2.
func (m *memory) h2c(t testing.TB) *http.Client {
	c := h2c(t)
	c.Transport.(*http.Transport).DialContext = m.Dial
	return c
}

// bubble runs a test in fake time, on a network of pipes.
func bubble(t *testing.T, test func(t *testing.T, m *memory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, new(memory)) })
}

// bubbleOf runs one case of a test in fake time.
func bubbleOf(t *testing.T, name string, test func(t *testing.T, m *memory)) {
	t.Run(name, func(t *testing.T) { bubble(t, test) })
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

// The queue and evaluate timeouts together bound an attempt's time to the first byte. All three timeouts together are the
// job's deadline. internal/dispatch tests the rules.
func TestFirstByteAndDeadline(t *testing.T) {
	hang := func(p *peer.Peer) { p.Request(); p.Gone() }
	quick := func(p *peer.Peer) { p.Request(); p.Say(ok) }
	late, over := record.ErrFirstByte.Error(), record.ErrDeadline.Error()
	for name, tc := range map[string]struct {
		job    string
		second func(*peer.Peer)
		status int
		took   time.Duration
		ended  []pool.Outcome
		errs   []string
	}{
		"without timeouts, the configured first-byte timeout applies, then one retry": {
			"{}", quick, 200, 5 * time.Minute, []pool.Outcome{pool.TimedOut, pool.Answered}, []string{late, ""},
		},
		"queue and evaluate bound an attempt, and the stream timeout leaves time for a retry": {
			`{"timeouts":{"queue_seconds":5,"evaluate_seconds":10,"stream_seconds":60}}`,
			quick, 200, 15 * time.Second, []pool.Outcome{pool.TimedOut, pool.Answered}, []string{late, ""},
		},
		"the deadline ends the retry, too": {
			`{"timeouts":{"queue_seconds":5,"evaluate_seconds":10,"stream_seconds":3}}`,
			hang, 504, 18 * time.Second, []pool.Outcome{pool.TimedOut, pool.Gone}, []string{late, over},
		},
		"without a stream timeout, no time is left for a retry": {
			`{"timeouts":{"evaluate_seconds":10}}`, quick, 504, 10 * time.Second, []pool.Outcome{pool.TimedOut}, []string{late},
		},
	} {
		bubbleOf(t, name, func(t *testing.T, m *memory) {
			c := startSidecar(t, setup{network: m, upstreams: []string{m.upstream(t, "up:1", hang), m.upstream(t, "up:2", tc.second)}})
			status, _, h, err := m.submit(t, tc.job)
			require.NoError(t, err)
			assert.Equal(t, tc.status, status)
			r := c.seen(1)[0]
			assert.Equal(t, tc.took, r.Total)
			assert.Equal(t, tc.ended, outcomes(r))
			for i, a := range r.Attempts {
				assert.True(t, strings.HasSuffix(a.Err, tc.errs[i]), "error of attempt %d: %s", i+1, a.Err)
			}
			if tc.status == 504 {
				assert.Equal(t, []any{"deadline", intake.Deadline, intake.Absent}, []any{h.Get("Pilotfish-Reason"), r.Outcome, r.Completeness})
			}
		})
	}
}

// A job waits for an upstream until its own queue timeout, the configured one, or its deadline. If the queue is full, it does not wait.
func TestAJobWaitsForAnUpstream(t *testing.T) {
	full := dispatch.QueueSettings{Jobs: 1, Bytes: 1, Wait: time.Second} // no body fits
	for job, tc := range map[string]struct {
		queue  dispatch.QueueSettings
		status int
		reason string
		took   time.Duration
	}{
		`{}`:                               {dispatch.DefaultQueue(), 503, "none-eligible", 10 * time.Second},
		`{"timeouts":{"queue_seconds":2}}`: {dispatch.DefaultQueue(), 503, "none-eligible", 2 * time.Second},
		`{"project_id":1}`:                 {full, 503, "queue-full", 0},
		`{"timeouts":{"evaluate_seconds":1,"stream_seconds":1}}`: {dispatch.DefaultQueue(), 504, "deadline", 2 * time.Second},
	} {
		bubbleOf(t, job, func(t *testing.T, m *memory) {
			c := startSidecar(t, setup{network: m, queue: tc.queue})
			status, text, h, _ := m.submit(t, job)
			assert.Equal(t, []any{tc.status, tc.reason, "application/problem+json"}, []any{status, h.Get("Pilotfish-Reason"), h.Get("Content-Type")})
			assert.Contains(t, text, `"type":"urn:pilotfish:problem:`+tc.reason+`"`)
			r := c.seen(1)[0]
			assert.Equal(t, tc.took, r.Queued)
			if status == 503 {
				assert.Equal(t, []any{"1", intake.Shed}, []any{h.Get("Retry-After"), r.Outcome})
			}
		})
	}
}

// The queue time of a job is the sum of its waits before all attempts: here 3 s until the first upstream is no longer
// overloaded, then, after an attempt of 1 s, 2 s until the second is not.
func TestQueueTimeIsTheSumOfAllWaits(t *testing.T) {
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

// The time that an upstream takes to tokenize a prompt precedes the first attempt. It counts neither as queue time nor as
// time to the first byte.
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

// A job may have started at an upstream that disconnected. If no other upstream becomes eligible within the queue timeout,
// the submitter gets 502 without Retry-After, because a second submission could run the job twice.
func TestNoRetryAfterForAJobThatMayHaveStarted(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		dies := m.upstream(t, "up:1", func(p *peer.Peer) { p.Request() })
		c := startSidecar(t, setup{network: m, overload: "threshold", upstreams: []string{dies, "up:2"}})
		c.reports("up:2", 1000)
		status, _, h, _ := m.submit(t, "{}")
		assert.Equal(t, []any{502, "no-response", ""}, []any{status, h.Get("Pilotfish-Reason"), h.Get("Retry-After")})
		assert.Equal(t, 10*time.Second, c.seen(1)[0].Total)
	})
}

// trickle is a body of left bytes that yields a piece after each pause. Its last bytes are {}.
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

// A submitter has 30 s, plus 1 s for each 256 bytes, to send its body. Otherwise, it gets 408.
func TestSlowBodies(t *testing.T) {
	for name, tc := range map[string]struct {
		body   *trickle
		status int
	}{
		"1 KiB/s":                {&trickle{left: 1 << 20, piece: 1 << 10, every: time.Second}, 200},
		"two pauses of 14 s":     {&trickle{left: 4, piece: 2, every: 14 * time.Second}, 200},
		"1 B/s":                  {&trickle{left: 1000, piece: 1, every: time.Second}, 408},
		"two pauses of a minute": {&trickle{left: 4, piece: 2, every: time.Minute}, 408},
		"32 B every 10 s":        {&trickle{left: 1000, piece: 32, every: 10 * time.Second}, 408},
	} {
		bubbleOf(t, name, func(t *testing.T, m *memory) {
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
	}
}

// A submitter that pauses for 4 minutes between reads gets the whole response. If it reads nothing for 5 minutes, the job
// ends with the outcome gone.
func TestSlowSubmitters(t *testing.T) {
	for pause, outcome := range map[time.Duration]intake.Outcome{4 * time.Minute: intake.Answered, 6 * time.Minute: intake.Gone} {
		bubble(t, func(t *testing.T, m *memory) {
			const size = 1_000_000
			up := m.upstream(t, "up:1", func(p *peer.Peer) {
				p.Request()
				p.Say("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("x", size))
			})
			c := startSidecar(t, setup{network: m, upstreams: []string{up}})
			conn := m.connect(t, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
			n := 0
			for buffer := make([]byte, 128<<10); n < size; time.Sleep(pause) {
				read, err := io.ReadFull(conn, buffer)
				if n += read; err != nil {
					break
				}
			}
			assert.Equal(t, outcome == intake.Answered, n >= size, "pauses of %v: %d bytes received", pause, n)
			assert.Equal(t, outcome, c.seen(1)[0].Outcome, "pauses of %v", pause)
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

// The write deadline of an interim response does not apply to the final one, which follows 6 minutes later. If it
// remained, net/http would reset the HTTP/2 stream after 5 minutes.
func TestAResponseLongAfterAnInterimOne(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		up := m.upstream(t, "up:1", func(p *peer.Peer) {
			p.Request()
			p.Say("HTTP/1.1 103 Early Hints\r\n\r\n")
			time.Sleep(6 * time.Minute)
			p.Say(ok)
		})
		startSidecar(t, setup{network: m, upstreams: []string{up}})
		res, err := m.h2c(t).Post("http://127.0.0.1:8080/", "application/json", reader(`{"timeouts":{"evaluate_seconds":1000}}`))
		require.NoError(t, err)
		assert.Equal(t, 200, res.StatusCode)
		assert.NoError(t, res.Body.Close())
	})
}

// The first-byte timeout starts when the upstream has received the whole request, so a slow upload is not the upstream's
// fault. Before that, an upstream that reads a large body slowly has this time for each piece. One failure opens the breaker
// here, which shows whether the upstream is blamed.
func TestTheFirstByteIsDueAfterTheRequest(t *testing.T) {
	const pieces, piece = 32, 32 << 10
	for name, tc := range map[string]struct {
		budget         int64         // of kept bodies; with 1 byte, the body is not kept
		upload, taking time.Duration // between two pieces
		wait           time.Duration // from the end of the request to the response
		status         int
		blamed         bool
	}{
		"a slow submitter":                                       {1, 20 * time.Second, 0, 4 * time.Minute, 200, false},
		"a slow submitter, then a slow upstream":                 {1, 20 * time.Second, 0, 6 * time.Minute, 504, true},
		"an upstream that reads slowly":                          {256 << 20, 0, 20 * time.Second, 4 * time.Minute, 200, false},
		"an upstream that stops reading":                         {256 << 20, 0, 6 * time.Minute, 0, 504, true},
		"an upstream that stops reading a body that is not kept": {1, 0, 6 * time.Minute, 0, 504, true},
		"a submitter that stops sending":                         {1, 6 * time.Minute, 0, 0, 408, false},
	} {
		bubbleOf(t, name, func(t *testing.T, m *memory) {
			up := m.upstream(t, "up:1", func(p *peer.Peer) {
				_, _ = p.Head()
				for range pieces {
					time.Sleep(tc.taking)
					if _, err := io.CopyN(io.Discard, p.In, piece); err != nil {
						return
					}
				}
				time.Sleep(tc.wait)
				p.Say(ok)
			})
			c := startSidecar(t, setup{network: m, upstreams: []string{up}, budget: tc.budget, failures: 1})
			const first = 9 * piece // more than what is read before an attempt
			r, err := http.NewRequest("POST", c.url("/"), io.MultiReader(bytes.NewReader(make([]byte, first)), &trickle{left: pieces*piece - first, piece: piece, every: tc.upload}))
			require.NoError(t, err)
			r.Header.Set("Content-Type", "text/plain")
			r.ContentLength = pieces * piece
			res, err := m.client(t).Do(r)
			require.NoError(t, err)
			_ = res.Body.Close()
			assert.Equal(t, tc.status, res.StatusCode)
			c.seen(1)
			assert.Equal(t, tc.blamed, !c.balancer.States()[0].Eligible)
			time.Sleep(time.Hour) // the submitter's transport wakes up and notices
		})
	}
}
