package proxy_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

const busy = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nbusy"

// An answer with a status of retry.on is passed on only where no other upstream does better.
func TestRetriesOnAnswers(t *testing.T) {
	up := map[string]string{
		"ok": ok, "busy": busy,
		"500":   "HTTP/1.1 500 No\r\nContent-Length: 1\r\n\r\n0",
		"502":   "HTTP/1.1 502 No\r\nContent-Length: 1\r\n\r\n2",
		"long":  fmt.Sprintf("HTTP/1.1 500 No\r\nContent-Length: 70000\r\n\r\n%070000d", 1),
		"cut":   "HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\n0",
		"close": "", // to the whole job
	}
	for _, tc := range []struct {
		upstreams string
		status    int
		body      string // "-" is a problem of pilotfish's own
		ended     []pool.Outcome
	}{
		{"500 ok", 200, "ok", []pool.Outcome{pool.Failed, pool.Answered}},
		{"500 500 ok", 200, "ok", []pool.Outcome{pool.Failed, pool.Failed, pool.Answered}},
		{"502 ok", 502, "2", []pool.Outcome{pool.Failed}},
		{"500 502 ok", 502, "2", []pool.Outcome{pool.Failed, pool.Failed}},
		{"500", 500, "0", []pool.Outcome{pool.Failed}},
		{"500 500 500 ok", 500, "0", []pool.Outcome{pool.Failed, pool.Failed, pool.Failed}},
		{"500 busy", 500, "0", []pool.Outcome{pool.Failed, pool.NotStarted}},
		{"busy 500", 500, "0", []pool.Outcome{pool.NotStarted, pool.Failed}},
		{"close 500", 500, "0", []pool.Outcome{pool.NoAnswer, pool.Failed}},
		{"500 close close", 500, "0", []pool.Outcome{pool.Failed, pool.NoAnswer, pool.NoAnswer}},
		{"long ok", 500, fmt.Sprintf("%070000d", 1), []pool.Outcome{pool.Failed}},
		{"cut ok", 200, "ok", []pool.Outcome{pool.Failed, pool.Answered}},
		{"cut", 502, "-", []pool.Outcome{pool.Failed}},
	} {
		t.Run(tc.upstreams, func(t *testing.T) {
			var ups []string
			for name := range strings.FieldsSeq(tc.upstreams) {
				ups = append(ups, scripted(t, func(p *peer) { p.request(); p.say("%s", up[name]) }).address)
			}
			c := startSidecar(t, setup{upstreams: ups, on: []int{500, 504}})
			res, text := c.post(`{"project_id": 1}`)
			assert.Equal(t, tc.status, res.StatusCode)
			if tc.body == "-" {
				assert.Equal(t, "no-answer", res.Header.Get("Pilotfish-Reason"))
			} else {
				assert.Equal(t, tc.body, text)
			}
			var ended []pool.Outcome
			r := c.seen(1)[0]
			for _, a := range r.Attempts {
				ended = append(ended, a.Outcome)
			}
			assert.Equal(t, tc.ended, ended)
			assert.Equal(t, tc.status, r.Status)
			inFlight, _ := c.balancer.Counts()
			assert.Zero(t, inFlight)
		})
	}
}

// How one attempt ends decides whether and where there is another.
func TestRetryRules(t *testing.T) {
	up := map[string]func(t *testing.T) string{
		"refuses": func(t *testing.T) string { return refusing(t) },
		"ok":      func(t *testing.T) string { return answering(t, ok).address },
		"busy":    func(t *testing.T) string { return answering(t, busy).address },
		"busy2":   func(t *testing.T) string { return answering(t, strings.Replace(busy, "busy", "BUSY", 1)).address },
		"not started": func(t *testing.T) string {
			return answering(t, "HTTP/1.1 503 No\r\nJob-Started: no\r\nContent-Length: 0\r\n\r\n").address
		},
		"unavailable": func(t *testing.T) string {
			return answering(t, "HTTP/1.1 503 No\r\nContent-Length: 1\r\n\r\n3").address
		},
		"error": func(t *testing.T) string {
			return answering(t, "HTTP/1.1 500 No\r\nContent-Length: 1\r\n\r\n0").address
		},
		"too many": func(t *testing.T) string {
			return answering(t, "HTTP/1.1 429 No\r\nRetry-After: 7\r\nContent-Length: 1\r\n\r\n9").address
		},
		"verbose": func(t *testing.T) string {
			return answering(t, fmt.Sprintf("HTTP/1.1 503 No\r\nRetry-After: 7\r\nContent-Length: 70000\r\n\r\n%070000d", 1)).address
		},
		"busy, cut short": func(t *testing.T) string {
			return scripted(t, func(p *peer) { p.request(); p.say("%s", strings.TrimSuffix(busy, "y")) }).address
		},
		"dies": func(t *testing.T) string { return scripted(t, func(p *peer) { p.request() }).address },
		"begins": func(t *testing.T) string { // and dies
			return scripted(t, func(p *peer) { p.request(); p.say("HTTP/1.1 102 Processing\r\n\r\n") }).address
		},
		"resets": func(t *testing.T) string {
			return scripted(t, func(p *peer) { p.request(); p.reset() }).address
		},
	}
	for _, tc := range []struct {
		upstreams string
		status    int
		body      string // "-" is a problem of pilotfish's own
		ended     []pool.Outcome
		outcome   intake.Outcome
	}{
		{"refuses ok", 200, "ok", []pool.Outcome{pool.Refused, pool.Answered}, intake.Answered},
		{"refuses refuses ok", 200, "ok", []pool.Outcome{pool.Refused, pool.Refused, pool.Answered}, intake.Answered},
		{"refuses refuses resets ok", 200, "ok", []pool.Outcome{pool.Refused, pool.Refused, pool.NoAnswer, pool.Answered}, intake.Answered},
		{"refuses", 502, "-", []pool.Outcome{pool.Refused}, intake.NoAnswer},
		{"dies ok", 200, "ok", []pool.Outcome{pool.NoAnswer, pool.Answered}, intake.Answered},
		{"begins ok", 200, "ok", []pool.Outcome{pool.NoAnswer, pool.Answered}, intake.Answered},
		{"dies dies ok", 502, "-", []pool.Outcome{pool.NoAnswer, pool.NoAnswer}, intake.NoAnswer},
		{"resets refuses ok", 200, "ok", []pool.Outcome{pool.NoAnswer, pool.Refused, pool.Answered}, intake.Answered},
		{"busy ok", 200, "ok", []pool.Outcome{pool.NotStarted, pool.Answered}, intake.Answered},
		{"not started ok", 200, "ok", []pool.Outcome{pool.NotStarted, pool.Answered}, intake.Answered},
		{"busy", 503, "busy", []pool.Outcome{pool.NotStarted}, intake.Failed},
		{"busy busy2", 503, "BUSY", []pool.Outcome{pool.NotStarted, pool.NotStarted}, intake.Failed},
		{"busy refuses", 503, "busy", []pool.Outcome{pool.NotStarted, pool.Refused}, intake.Failed},
		{"busy dies dies ok", 502, "-", []pool.Outcome{pool.NotStarted, pool.NoAnswer, pool.NoAnswer}, intake.NoAnswer},
		{"busy dies", 502, "-", []pool.Outcome{pool.NotStarted, pool.NoAnswer}, intake.NoAnswer},
		{"dies busy", 502, "-", []pool.Outcome{pool.NoAnswer, pool.NotStarted}, intake.NoAnswer},
		{"dies refuses", 502, "-", []pool.Outcome{pool.NoAnswer, pool.Refused}, intake.NoAnswer},
		{"busy, cut short ok", 200, "ok", []pool.Outcome{pool.NotStarted, pool.Answered}, intake.Answered},
		{"busy, cut short", 502, "-", []pool.Outcome{pool.NotStarted}, intake.NoAnswer},
		{"verbose ok", 503, fmt.Sprintf("%070000d", 1), []pool.Outcome{pool.NotStarted}, intake.Failed},
		{"unavailable ok", 503, "3", []pool.Outcome{pool.Failed}, intake.Failed},
		{"error ok", 500, "0", []pool.Outcome{pool.Failed}, intake.Failed},
		{"dies verbose", 502, "-", []pool.Outcome{pool.NoAnswer, pool.NotStarted}, intake.NoAnswer},
		{"dies too many", 502, "-", []pool.Outcome{pool.NoAnswer, pool.NotStarted}, intake.NoAnswer},
		{"dies too many ok", 200, "ok", []pool.Outcome{pool.NoAnswer, pool.NotStarted, pool.Answered}, intake.Answered},
		{"too many ok", 429, "9", []pool.Outcome{pool.Answered}, intake.Answered},
	} {
		t.Run(tc.upstreams, func(t *testing.T) {
			var ups []string
			for rest := tc.upstreams; rest != ""; rest = strings.TrimSpace(rest) {
				name := longestPrefix(rest, up)
				require.NotEmpty(t, name)
				ups = append(ups, up[name](t))
				rest = rest[len(name):]
			}
			// Where all refuse, no time is left to ask them anew.
			c := startSidecar(t, setup{upstreams: ups, queue: dispatch.QueueSettings{Jobs: 1, Bytes: 1, Wait: 1}})
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
		})
	}
}

func longestPrefix[V any](s string, names map[string]V) (longest string) {
	for name := range names {
		if strings.HasPrefix(s, name) && len(name) > len(longest) {
			longest = name
		}
	}
	return longest
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
	assert.GreaterOrEqual(t, up.conns.Load(), int64(workers*each/2), "each connection died after two jobs: so many were found dead")
	executed.Range(func(job, n any) bool {
		return assert.LessOrEqual(t, n.(*atomic.Int32).Load(), int32(2), job)
	})
}

// A job whose pooled connection has ended goes on to a fresh one: a second stale one would use
// up its only repetition, though it ran nowhere.
func TestAfterAStaleConnectionAFreshOne(t *testing.T) {
	var ups []string
	for range 2 {
		ups = append(ups, scripted(t, func(p *peer) {
			for p.request() != nil {
				p.say("%s", ok)
				if p.n == 1 { // it takes the next job, and is gone
					_, _ = p.in.ReadByte()
					p.reset()
					return
				}
			}
		}).address)
	}
	var turn atomic.Int64
	c := startSidecar(t, setup{upstreams: ups, policy: picker(func(views []selection.View) int {
		return int(turn.Add(1)-1) % len(views)
	})})
	pooled := func() bool { return maps.Equal(c.handler.Idle(), map[string]int{ups[0]: 1, ups[1]: 1}) }
	for range ups {
		c.post("{}")
	}
	require.Eventually(t, pooled, patience, time.Millisecond)
	res, text := c.post("{}")
	require.Equal(t, 200, res.StatusCode, text)
	var ended []pool.Outcome
	for _, r := range c.seen(3) {
		for _, a := range r.Attempts {
			ended = append(ended, a.Outcome)
		}
	}
	assert.ElementsMatch(t, []pool.Outcome{pool.Answered, pool.Answered, pool.NoAnswer, pool.Answered}, ended)
}

// picker picks by a function.
type picker func(views []selection.View) int

func (p picker) Pick(_ selection.Job, views []selection.View, _ *rand.Rand) int { return p(views) }

// A job that was lost while it was sent may have begun: it is sent to one other upstream.
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

// A job that kills what it meets is sent twice at most, pooled connections and
// headers that ask for a replay notwithstanding.
func TestAKillerDoesNotTour(t *testing.T) {
	var killed atomic.Int32
	var ups []string
	for range 4 {
		ups = append(ups, scripted(t, func(p *peer) {
			for r := p.request(); r != nil; r = p.request() {
				if strings.Contains(string(r.body), "kill") {
					killed.Add(1)
					return
				}
				p.say(ok)
			}
		}).address)
	}
	for warm := range 3 {
		c := startSidecar(t, setup{upstreams: ups})
		for range warm {
			res, _ := c.post("{}")
			assert.Equal(t, 200, res.StatusCode)
		}
		killed.Store(0)
		r, err := http.NewRequest("POST", c.url("/"), reader(`{"x":"kill"}`))
		require.NoError(t, err)
		r.Header.Set("Idempotency-Key", "1")
		res, err := client(t).Do(r)
		require.NoError(t, err)
		_ = res.Body.Close()
		assert.Equal(t, 502, res.StatusCode)
		assert.EqualValues(t, 2, killed.Load())
	}
}

// An upstream that answers without reading the job, and closes, is heard.
func TestEarlyAnswers(t *testing.T) {
	body, _ := jobOf(4 << 20)
	early := func(answer string) string {
		return scripted(t, func(p *peer) {
			if _, err := p.head(); err == nil {
				p.say("%s", answer)
			}
		}).address
	}
	forbidden := early("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
	shedding := early(busy)
	good := answering(t, ok).address
	for range 8 {
		c := startSidecar(t, setup{upstreams: []string{forbidden}})
		res, text := c.post(body)
		require.Equal(t, 403, res.StatusCode, text)
		require.Equal(t, "no", text)
		c = startSidecar(t, setup{upstreams: []string{shedding, good}})
		res, text = c.post(body)
		require.Equal(t, 200, res.StatusCode, text)
	}
}

func TestRetryBudgetUnderTotalOutage(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		var received atomic.Int32
		down := func(p *peer) {
			if p.request() != nil {
				received.Add(1)
				p.say("HTTP/1.1 503 No\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			}
		}
		var ups []string
		for _, address := range []string{"up:1", "up:2", "up:3", "up:4"} {
			ups = append(ups, m.upstream(t, address, down))
		}
		c := startSidecar(t, setup{network: m, upstreams: ups, retries: 0.2})
		const jobs = 1000
		for range jobs {
			status, _, _, _ := m.submit(t, "{}")
			assert.Equal(t, 503, status)
			time.Sleep(10 * time.Millisecond)
		}
		assert.InEpsilon(t, 1.2*jobs, received.Load(), 0.01)
		refused := 0
		for _, r := range c.seen(jobs) {
			if r.RetryRefused {
				refused++
			}
		}
		assert.Greater(t, refused, jobs/2)
	})
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
