package proxy_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
)

const busy = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nbusy"

// How one attempt ends decides whether and where there is another. An answer with a status of retry.on is passed
// on only where no other upstream does better.
func TestRetryRules(t *testing.T) {
	const length = "Content-Length: 1\r\n\r\n"
	long := fmt.Sprintf("Content-Length: 70000\r\n\r\n%070000d", 1)
	up := map[string]string{
		"ok": ok, "busy": busy, "BUSY": strings.Replace(busy, "busy", "BUSY", 1),
		"undone":      "HTTP/1.1 503 No\r\nJob-Started: no\r\nContent-Length: 0\r\n\r\n",
		"unavailable": "HTTP/1.1 503 No\r\n" + length + "3",
		"error":       "HTTP/1.1 502 No\r\n" + length + "2",
		"unwanted":    "HTTP/1.1 500 No\r\n" + length + "0", // by retry.on
		"unwanted-4":  "HTTP/1.1 504 No\r\n" + length + "4",
		"too-many":    "HTTP/1.1 429 No\r\nRetry-After: 7\r\n" + length + "9",
		"verbose":     "HTTP/1.1 503 No\r\nRetry-After: 7\r\n" + long,
		"long":        "HTTP/1.1 500 No\r\n" + long,
		"busy-cut":    strings.TrimSuffix(busy, "y"),
		"cut":         "HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\n0",
		"dies":        "",
		"begins":      "HTTP/1.1 102 Processing\r\n\r\n", // then the connection ends
		"garbage":     "\x00\x01\x02\x03\r\n\r\n",
		"switches":    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
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
		{"busy-cut", 502, "-", []pool.Outcome{undone}, intake.NoAnswer},
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
		{"busy unwanted", 500, "0", []pool.Outcome{undone, failed}, intake.Failed},
		{"dies unwanted", 500, "0", []pool.Outcome{dead, failed}, intake.Failed},
		{"unwanted dies dies", 500, "0", []pool.Outcome{failed, dead, dead}, intake.Failed},
		{"long ok", 500, fmt.Sprintf("%070000d", 1), []pool.Outcome{failed}, intake.Failed},
		{"cut ok", 200, "ok", []pool.Outcome{failed, answered}, intake.Answered},
		{"cut", 502, "-", []pool.Outcome{failed}, intake.NoAnswer},
	} {
		t.Run(tc.upstreams, func(t *testing.T) {
			var ups []string
			for name := range strings.FieldsSeq(tc.upstreams) {
				if name == "refuses" {
					ups = append(ups, refusing(t))
					continue
				}
				ups = append(ups, scripted(t, func(p *peer) {
					if p.request(); name == "resets" {
						p.reset()
					}
					p.say("%s", up[name])
				}).address)
			}
			queue := dispatch.DefaultQueue()
			if tc.upstreams == "refuses" {
				queue.Wait = 1 // no time is left for a retry
			}
			c := startSidecar(t, setup{upstreams: ups, on: []int{500, 504}, queue: queue})
			res, text := c.post(`{"project_id": 1}`)
			assert.Equal(t, tc.status, res.StatusCode)
			if tc.body == "-" {
				assert.Equal(t, "no-answer", res.Header.Get("Pilotfish-Reason"))
			} else {
				assert.Equal(t, tc.body, text)
				assert.Empty(t, res.Header.Get("Pilotfish-Reason"))
			}
			r := c.seen(1)[0]
			require.Len(t, r.Attempts, len(tc.ended))
			for i, a := range r.Attempts {
				assert.Equal(t, tc.ended[i], a.Outcome, "attempt %d", i)
				assert.Equal(t, ups[i], a.Upstream, "each goes to another upstream")
			}
			assert.Equal(t, tc.outcome, r.Outcome)
			assert.Equal(t, tc.status, r.Status)
			inFlight, _ := c.balancer.Counts()
			assert.Zero(t, inFlight)
		})
	}
}

// An upstream that closes each connection after two answers, without saying
// so, races with the job that comes third.
func TestKeptConnectionsThatTurnOutDead(t *testing.T) {
	var executed sync.Map
	up := scripted(t, func(p *peer) {
		for range 2 {
			r := p.request()
			if r == nil {
				return
			}
			n, _ := executed.LoadOrStore(string(r.body), new(atomic.Int32))
			n.(*atomic.Int32).Add(1)
			p.say(ok)
		}
	})
	c := startSidecar(t, setup{upstreams: []string{up.address}})
	const workers, each = 4, 1000
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			s := c.connect()
			for i := range each {
				s.job(fmt.Sprintf(`{"n":%d}`, w*each+i))
				if !assert.Equal(t, 200, s.status()) {
					return
				}
			}
		})
	}
	all.Wait()
	c.seen(workers * each)
	assert.GreaterOrEqual(t, up.conns.Load(), int64(workers*each/2), "each connection is closed after two jobs, so this many were opened")
	executed.Range(func(job, n any) bool {
		return assert.LessOrEqual(t, n.(*atomic.Int32).Load(), int32(2), job)
	})
}

// Servers and proxies send 408 when they close an idle connection. A job that was sent at that moment was not read: it is
// sent anew, at no cost to the retry budget, and no breaker opens. On a new connection, a 408 is the response.
func TestA408OnAPooledConnection(t *testing.T) {
	const late = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
	up := scripted(t, func(p *peer) {
		p.request()
		if p.n <= 20 {
			p.say(ok)
			p.request()
		}
		p.say(late)
	})
	c := startSidecar(t, setup{upstreams: []string{up.address}, retries: 1e-9, failures: 1})
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

// A job whose connection ends while it is sent may have started, so it is sent to only one other upstream.
func TestAJobThatIsLostWhileItIsSent(t *testing.T) {
	body, _ := jobOf(24 << 20) // more than sockets hold
	cuts := func() string {
		return scripted(t, func(p *peer) {
			if _, err := p.head(); err == nil {
				p.reset()
			}
		}).address
	}
	c := startSidecar(t, setup{upstreams: []string{cuts(), cuts(), answering(t, ok).address}})
	res, _ := c.post(body)
	assert.Equal(t, 502, res.StatusCode)
	r := c.seen(1)[0]
	require.Len(t, r.Attempts, 2)
	assert.Equal(t, []pool.Outcome{pool.Refused, pool.Refused}, []pool.Outcome{r.Attempts[0].Outcome, r.Attempts[1].Outcome})
}

func TestASubmitterThatLeavesBetweenAttemptsEndsThem(t *testing.T) {
	left := make(chan struct{})
	reached := make(chan struct{}, 10)
	die := func(n int) string {
		return scripted(t, func(p *peer) {
			p.request()
			reached <- struct{}{}
			if n == 2 {
				<-left
				p.gone() // until the sidecar has noticed, too
			}
			p.say(busy)
		}).address
	}
	c := startSidecar(t, setup{upstreams: []string{die(1), die(2), die(3)}})
	s := c.connect()
	s.job("{}")
	<-reached
	<-reached
	_ = s.Close()
	close(left)
	r := c.seen(1)[0]
	require.Len(t, r.Attempts, 2)
	assert.Equal(t, pool.Gone, r.Attempts[1].Outcome)
	assert.Equal(t, 499, r.Status)
	assert.Empty(t, reached)
}
