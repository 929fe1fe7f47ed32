package proxy_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/test/peer"
)

const busy = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nbusy"

// outcomes returns how each attempt ended.
func outcomes(r *record.Job) (all []pool.Outcome) {
	for _, a := range r.Attempts {
		all = append(all, a.Outcome)
	}
	return all
}

// How one attempt ends decides whether and where there is another. A response with a status of retry.on is passed
// on only where no other upstream does better.
func TestRetryRules(t *testing.T) {
	const length = "Content-Length: 1\r\n\r\n"
	long := fmt.Sprintf("Content-Length: 70000\r\n\r\n%070000d", 1)
	up := map[string]string{
		"ok": ok, "busy": busy, "BUSY": strings.Replace(busy, "busy", "BUSY", 1),
		"undone":         "HTTP/1.1 503 No\r\nJob-Started: no\r\nContent-Length: 0\r\n\r\n",
		"unavailable":    "HTTP/1.1 503 No\r\n" + length + "3",
		"error":          "HTTP/1.1 502 No\r\n" + length + "2",
		"unwanted":       "HTTP/1.1 500 No\r\n" + length + "0", // by retry.on
		"unwanted-4":     "HTTP/1.1 504 No\r\n" + length + "4",
		"too-many":       "HTTP/1.1 429 No\r\nRetry-After: 7\r\n" + length + "9",
		"verbose":        "HTTP/1.1 503 No\r\nRetry-After: 7\r\n" + long,
		"withdrawn":      "HTTP/1.1 503 No\r\nJob-Started: withdrawn\r\n" + length + "w",
		"withdrawn-long": "HTTP/1.1 503 No\r\nJob-Started: withdrawn\r\n" + long,
		"long":           "HTTP/1.1 500 No\r\n" + long,
		"busy-cut":       strings.TrimSuffix(busy, "y"),
		"cut":            "HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\n0",
		"dies":           "",
		"begins":         "HTTP/1.1 102 Processing\r\n\r\n", // then the connection ends
		"garbage":        "\x00\x01\x02\x03\r\n\r\n",
		"switches":       "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
	}
	const refused, dead, undone, failed, cut, answered = pool.Refused, pool.NoAnswer, pool.NotStarted, pool.Failed, pool.Truncated, pool.Answered
	for _, tc := range []struct {
		upstreams string
		status    int
		body      string // "-" is a problem of pilotfish's own
		ended     []pool.Outcome
		outcome   intake.Outcome
	}{
		{"refuses refuses resets ok", 200, "ok", []pool.Outcome{refused, refused, dead, answered}, intake.Answered},
		{"refuses", 502, "-", []pool.Outcome{refused}, intake.NoAnswer},
		{"dies ok", 200, "ok", []pool.Outcome{dead, answered}, intake.Answered},
		{"begins ok", 200, "ok", []pool.Outcome{dead, answered}, intake.Answered},
		{"dies dies ok", 502, "-", []pool.Outcome{dead, dead}, intake.NoAnswer},
		{"resets refuses ok", 200, "ok", []pool.Outcome{dead, refused, answered}, intake.Answered},
		{"garbage ok", 502, "-", []pool.Outcome{cut}, intake.NoAnswer}, // a byte of a response has arrived
		{"switches ok", 502, "-", []pool.Outcome{cut}, intake.NoAnswer},
		{"busy ok", 200, "ok", []pool.Outcome{undone, answered}, intake.Answered},
		{"undone ok", 200, "ok", []pool.Outcome{undone, answered}, intake.Answered},
		{"busy", 503, "busy", []pool.Outcome{undone}, intake.Failed},
		{"busy BUSY", 503, "BUSY", []pool.Outcome{undone, undone}, intake.Failed},
		{"busy refuses", 503, "busy", []pool.Outcome{undone, refused}, intake.Failed},
		{"busy dies dies ok", 502, "-", []pool.Outcome{undone, dead, dead}, intake.NoAnswer},
		{"busy dies", 502, "-", []pool.Outcome{undone, dead}, intake.NoAnswer},
		{"dies busy", 502, "-", []pool.Outcome{dead, undone}, intake.NoAnswer},
		{"dies refuses", 502, "-", []pool.Outcome{dead, refused}, intake.NoAnswer},
		{"busy-cut ok", 200, "ok", []pool.Outcome{undone, answered}, intake.Answered},
		{"verbose", 503, fmt.Sprintf("%070000d", 1), []pool.Outcome{undone}, intake.Failed},
		{"withdrawn ok", 200, "ok", []pool.Outcome{pool.Moved, answered}, intake.Answered},
		{"withdrawn", 503, "w", []pool.Outcome{pool.Moved}, intake.Failed},
		{"withdrawn-long", 503, fmt.Sprintf("%070000d", 1), []pool.Outcome{pool.Moved}, intake.Failed},
		{"withdrawn-long ok", 503, fmt.Sprintf("%070000d", 1), []pool.Outcome{pool.Moved}, intake.Failed},
		{"busy withdrawn-long", 503, fmt.Sprintf("%070000d", 1), []pool.Outcome{undone, pool.Moved}, intake.Failed},
		{"dies withdrawn-long", 502, "-", []pool.Outcome{dead, pool.Moved}, intake.NoAnswer},
		{"busy busy withdrawn-long", 503, fmt.Sprintf("%070000d", 1), []pool.Outcome{undone, undone, pool.Moved}, intake.Failed},
		{"verbose ok", 503, fmt.Sprintf("%070000d", 1), []pool.Outcome{undone}, intake.Failed},
		{"unavailable ok", 503, "3", []pool.Outcome{failed}, intake.Failed},
		{"error ok", 502, "2", []pool.Outcome{failed}, intake.Failed},
		{"dies verbose", 502, "-", []pool.Outcome{dead, undone}, intake.NoAnswer},
		{"dies too-many", 502, "-", []pool.Outcome{dead, undone}, intake.NoAnswer},
		{"dies too-many ok", 200, "ok", []pool.Outcome{dead, undone, answered}, intake.Answered},
		{"too-many ok", 429, "9", []pool.Outcome{answered}, intake.Answered},
		{"unwanted unwanted ok", 200, "ok", []pool.Outcome{failed, failed, answered}, intake.Answered},
		{"unwanted error ok", 502, "2", []pool.Outcome{failed, failed}, intake.Failed},
		{"unwanted", 500, "0", []pool.Outcome{failed}, intake.Failed},
		{"unwanted-4 unwanted unwanted-4 ok", 504, "4", []pool.Outcome{failed, failed, failed}, intake.Failed},
		{"unwanted busy", 500, "0", []pool.Outcome{failed, undone}, intake.Failed},
		{"unwanted verbose", 500, "0", []pool.Outcome{failed, undone}, intake.Failed},
		{"busy unwanted", 500, "0", []pool.Outcome{undone, failed}, intake.Failed},
		{"dies unwanted", 500, "0", []pool.Outcome{dead, failed}, intake.Failed},
		{"unwanted dies dies", 500, "0", []pool.Outcome{failed, dead, dead}, intake.Failed},
		{"long ok", 500, fmt.Sprintf("%070000d", 1), []pool.Outcome{failed}, intake.Failed},
		{"cut ok", 200, "ok", []pool.Outcome{failed, answered}, intake.Answered},
	} {
		t.Run(tc.upstreams, func(t *testing.T) {
			var ups []string
			for name := range strings.FieldsSeq(tc.upstreams) {
				if name == "refuses" {
					ups = append(ups, refusing(t))
					continue
				}
				ups = append(ups, peer.Listen(t, func(p *peer.Peer) {
					if p.Request(); name == "resets" {
						p.Reset()
					}
					p.Say("%s", up[name])
				}))
			}
			queue := dispatch.DefaultQueue()
			if tc.upstreams == "refuses" {
				queue.Wait = 1 // no time is left for a retry
			}
			c := startSidecar(t, setup{upstreams: ups, on: []int{500, 504}, queue: queue})
			res, text := c.post(`{"project_id": 1}`)
			assert.Equal(t, tc.status, res.StatusCode)
			if tc.body == "-" {
				assert.Equal(t, "no-response", res.Header.Get("Pilotfish-Reason"))
			} else {
				assert.Equal(t, tc.body, text)
				assert.Empty(t, res.Header.Get("Pilotfish-Reason"))
			}
			r := c.seen(1)[0]
			assert.Equal(t, tc.ended, outcomes(r))
			for i, a := range r.Attempts {
				assert.Equal(t, ups[i], a.Upstream, "each goes to another upstream")
			}
			assert.Equal(t, tc.outcome, r.Outcome)
			assert.Equal(t, tc.status, r.Status)
		})
	}
}

// A response that is retried reaches the submitter as far as it was received, if no other upstream does better. While there is
// another upstream, the job waits a second for the rest.
func TestResponsesThatAreRetriedAndIncomplete(t *testing.T) {
	const head = "HTTP/1.1 503 No\r\nJob-Started: no\r\nContent-Length: 4\r\n\r\n"
	unwanted := strings.Replace(strings.Replace(head, "503", "500", 1), "Job-Started: no\r\n", "", 1)
	for name, c := range map[string]struct {
		upstreams []string // what each sends: "|" is a pause of five seconds
		status    int
		body      string
		complete  bool
		after     time.Duration
	}{
		"truncated":                            {[]string{head + "bus"}, 503, "bus", false, 0},
		"withdrawn and truncated":              {[]string{strings.Replace(head, ": no", ": withdrawn", 1) + "bus"}, 503, "bus", false, 0},
		"no body":                              {[]string{head}, 503, "", false, 0},
		"slow":                                 {[]string{head + "bus|y"}, 503, "bus", false, time.Second},
		"slow, no retry is allowed":            {[]string{head + "busy", head + "full", head + "bus|y"}, 503, "busy", true, 5 * time.Second},
		"truncated, no retry is allowed":       {[]string{head + "busy", head + "full", head + "bus"}, 503, "bus", false, 0},
		"a complete one before":                {[]string{head + "full", head + "bus"}, 503, "full", true, 0},
		"a complete one after":                 {[]string{head + "bus", head + "full"}, 503, "full", true, 0},
		"retry.on, truncated":                  {[]string{unwanted + "oo"}, 500, "oo", false, 0},
		"retry.on, and one that did not start": {[]string{unwanted + "oo", head + "full"}, 500, "oo", false, 0},
		"a success after":                      {[]string{head + "bus", ok}, 200, "ok", true, 0},
	} {
		bubble(t, func(t *testing.T, m *memory) {
			var ups []string
			for i, says := range c.upstreams {
				ups = append(ups, m.upstream(t, fmt.Sprintf("up:%d", i+1), func(p *peer.Peer) {
					p.Request()
					for i, part := range strings.Split(says, "|") {
						time.Sleep(time.Duration(i) * 5 * time.Second)
						p.Say("%s", part)
					}
				}))
			}
			startSidecar(t, setup{network: m, upstreams: ups, on: []int{500}})
			start := time.Now()
			status, text, h, err := m.submit(t, "{}")
			assert.Equal(t, []any{c.status, c.body, c.complete}, []any{status, text, err == nil}, name)
			assert.Empty(t, h.Get("Pilotfish-Reason"), name)
			assert.Equal(t, c.after, time.Since(start).Truncate(time.Second), name)
		})
	}
}

// Servers and proxies send 408 when they close an idle connection. A job that was sent at that moment was not read: it is
// sent anew, at no cost to the retry budget, and no breaker opens. On a new connection, a 408 is the response.
func TestA408OnAPooledConnection(t *testing.T) {
	const late = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
	up := peer.Listen(t, func(p *peer.Peer) {
		p.Request()
		if p.N <= 20 {
			p.Say(ok)
			p.Request()
		}
		p.Say(late)
	})
	c := startSidecar(t, setup{upstreams: []string{up}, retries: 1e-9, failures: 1})
	for n := range 20 {
		res, _ := c.post("{}")
		require.Equal(t, 200, res.StatusCode)
		c.seen(n + 1) // its connection is in the pool
	}
	res, _ := c.post("{}")
	assert.Equal(t, 408, res.StatusCode)
	assert.True(t, c.balancer.States()[0].Eligible)
	assert.Len(t, c.seen(21)[20].Attempts, 2)
}

// A pooled connection that ends before the first byte of a response is no failure of the
// upstream, unless the job may be the cause. The connection that replaces it is a new one: others of the pool may be as dead.
func TestADeadConnectionIsReplaced(t *testing.T) {
	unread := func(p *peer.Peer) { time.Sleep(time.Minute) } // closes while the job is being written
	read := func(p *peer.Peer) { p.Request() }
	const pooled = 2
	dead := func(n int, end func(*peer.Peer)) func(*peer.Peer) { // the first n connections end, all pooled ones among them
		return func(p *peer.Peer) {
			if p.N <= pooled {
				p.Request()
				time.Sleep(time.Second) // until all of the first jobs are here
				p.Say(ok)
			}
			if p.N <= n {
				end(p)
				return
			}
			p.Request()
			p.Say(ok)
		}
	}
	both := []pool.Outcome{pool.NoAnswer, pool.Answered}
	for name, tc := range map[string]struct {
		script func(*peer.Peer)
		other  bool
		status int
		ended  []pool.Outcome
	}{
		"nothing was sent":                           {dead(pooled, unread), true, 200, []pool.Outcome{pool.Refused, pool.Answered}},
		"nothing was sent: there is only one":        {dead(pooled, unread), false, 200, []pool.Outcome{pool.Refused, pool.Answered}},
		"it was sent: elsewhere":                     {dead(pooled, read), true, 200, both},
		"it was sent: there is only one":             {dead(pooled, read), false, 200, both},
		"it timed out: that is not the connection":   {dead(pooled, func(p *peer.Peer) { p.Request(); p.Gone() }), false, 504, []pool.Outcome{pool.TimedOut}},
		"it was not read: nor is that":               {dead(pooled, func(*peer.Peer) { time.Sleep(time.Hour) }), false, 504, []pool.Outcome{pool.TimedOut}},
		"it was sent, and again: the job may be why": {dead(pooled+1, read), false, 502, []pool.Outcome{pool.NoAnswer, pool.NoAnswer}},
	} {
		bubbleOf(t, name, func(t *testing.T, m *memory) {
			ups := []string{m.upstream(t, "up:1", tc.script)}
			if tc.other {
				ups = append(ups, m.upstream(t, "up:2", func(p *peer.Peer) { p.Request(); p.Say(ok) }))
			}
			c := startSidecar(t, setup{network: m, upstreams: ups})
			var first sync.WaitGroup
			for range pooled {
				first.Go(func() { m.submit(t, "{}") })
			}
			first.Wait()
			synctest.Wait() // until the connections are pooled
			status, _, _, _ := m.submit(t, "{}")
			assert.Equal(t, tc.status, status)
			r := c.seen(pooled + 1)[pooled]
			assert.Equal(t, tc.ended, outcomes(r))
			assert.Equal(t, tc.other && len(tc.ended) > 1, r.Attempt().Upstream == "up:2")
		})
	}
}

// Where no upstream accepts a connection, a job tries them all again and again until its time in a queue is over.
func TestConnectTimeoutIsDoubled(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) { // a dial to an address without a listener times out
		c := startSidecar(t, setup{network: m, upstreams: []string{"up:1", "up:2", "up:3", "up:4"}, wait: 30 * time.Second})
		status, _, h, _ := m.submit(t, "{}")
		assert.Equal(t, 503, status)
		assert.Equal(t, "none-eligible", h.Get("Pilotfish-Reason"))
		r := c.seen(1)[0]
		require.Greater(t, len(r.Attempts), 4)
		for i, a := range r.Attempts[:4] {
			assert.Equal(t, pool.Refused, a.Outcome)
			assert.Equal(t, time.Second<<i, a.End-a.Start)
			if i > 0 {
				assert.Equal(t, r.Attempts[i-1].End, a.Start, "it goes elsewhere at once")
			}
		}
		assert.Equal(t, time.Second, r.Attempts[4].End-r.Attempts[4].Start, "the second round begins anew")
		assert.Less(t, r.Total, time.Minute)
	})
}

// unresolved is the error of a look-up that takes the whole connect timeout.
func unresolved(ctx context.Context, network, address string) error {
	<-ctx.Done()
	name, _, _ := net.SplitHostPort(address)
	return &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "i/o timeout", Name: name, IsTimeout: true}}
}

// A name that cannot be resolved while others can costs a job one connect timeout, and its upstream then gets no job. The
// connect timeout of the only name counts, too, and the submitter gets its error.
func TestOneNameIsNotResolved(t *testing.T) {
	for name, others := range map[string][]string{"one of two": {"up:1"}, "the only one": nil, "the others are IP addresses": {"10.0.0.1:1"}} {
		bubble(t, func(t *testing.T, m *memory) {
			upstreams := append([]string{"lost:1"}, others...)
			for _, address := range others {
				m.upstream(t, address, func(p *peer.Peer) { p.Request(); p.Say(ok) })
			}
			c := startSidecar(t, setup{network: m, upstreams: upstreams, failures: 5, wait: 10 * time.Second, Config: proxy.Config{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				if address == "lost:1" {
					return nil, unresolved(ctx, network, address)
				}
				return m.Dial(ctx, network, address)
			}}})
			status, body, h, err := m.submit(t, "{}")
			require.NoError(t, err)
			r := c.seen(1)[0]
			assert.Contains(t, r.Attempts[0].Err, "lookup lost: i/o timeout", name)
			for _, s := range c.balancer.States() {
				assert.Equal(t, map[bool]string{true: "a connection timed out"}[s.Address == "lost:1"], s.Breaker.Why, name)
			}
			if len(others) == 0 {
				assert.Equal(t, []any{502, "no-response"}, []any{status, h.Get("Pilotfish-Reason")}, body)
				assert.Contains(t, body, "lookup lost: i/o timeout")
				return
			}
			assert.Equal(t, 200, status, name)
			_, _, _, err = m.submit(t, "{}")
			require.NoError(t, err)
			assert.Len(t, c.seen(2)[1].Attempts, 1, name)
		})
	}
}

// A sidecar without file descriptors, or whose resolver fails, blames no upstream, except that of the first name that is not
// resolved: the job waits until connections succeed, and otherwise gets the reason.
func TestASidecarThatCannotDial(t *testing.T) {
	for text, fails := range map[string]func(ctx context.Context, network, address string) error{
		"too many open files": func(_ context.Context, network, _ string) error {
			return &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("socket", syscall.EMFILE)}
		},
		"i/o timeout": unresolved,
	} {
		bubble(t, func(t *testing.T, m *memory) {
			start := time.Now()
			first := m.upstream(t, "first:1", func(p *peer.Peer) { p.Request(); p.Say(ok) })
			second := m.upstream(t, "second:1", func(p *peer.Peer) { p.Request(); p.Say(ok) })
			c := startSidecar(t, setup{network: m, upstreams: []string{first, second}, failures: 2, Config: proxy.Config{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				if time.Since(start) < 5*time.Second {
					return nil, fails(ctx, network, address)
				}
				return m.Dial(ctx, network, address)
			}}})
			status, _, _, err := m.submit(t, "{}")
			require.NoError(t, err)
			assert.Equal(t, 200, status)
			r := c.seen(1)[0]
			assert.Greater(t, len(r.Attempts), 2)
			assert.Contains(t, r.Attempts[0].Err, text)
			states := c.balancer.States()
			assert.Equal(t, text == "i/o timeout", states[0].Breaker.Trips > 0, text)
			assert.Zero(t, states[1].Breaker.Trips, text)

			start = time.Now().Add(time.Hour)
			status, body, h, err := m.submit(t, "{}")
			require.NoError(t, err)
			assert.Equal(t, []any{503, "not-dialed"}, []any{status, h.Get("Pilotfish-Reason")}, body)
			assert.NotEmpty(t, h.Get("Retry-After"))
		})
	}
}
