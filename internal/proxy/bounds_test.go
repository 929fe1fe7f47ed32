package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/test/peer"
)

// A long head counts for as long as its job is under way, like a body. So does a job over HTTP/2.
func TestLongHeadsCountInTheBudget(t *testing.T) {
	for proto, newClient := range map[string]func(testing.TB) *http.Client{"HTTP/1.1": client, "HTTP/2.0": h2c} {
		least := map[string]int{"HTTP/1.1": 0, "HTTP/2.0": 16 << 10}[proto]
		var c *sidecar
		up := serving(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprint(w, c.budget.Used())
		})
		c = startSidecar(t, setup{upstreams: []string{up}, budget: 1})
		submit := newClient(t) // after the sidecar, whose end would wait for its connections
		for size, counted := range map[int]int{100: 0, 15_000: 15_000} {
			r, err := http.NewRequest("POST", c.url("/"), strings.NewReader("{}"))
			require.NoError(t, err)
			r.Header.Set("X-Long", strings.Repeat("x", size))
			res, err := submit.Do(r)
			require.NoError(t, err)
			text, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			assert.NoError(t, res.Body.Close())
			assert.Equal(t, proto, res.Proto)
			used, err := strconv.Atoi(string(text))
			require.NoError(t, err)
			assert.InDelta(t, least+counted+4<<10, used, 4<<10)
		}
	}
}

// The head of a response counts, too. If there is no memory for it, the job is not retried.
func TestLongHeadsOfResponsesCountInTheBudget(t *testing.T) {
	var c *sidecar
	lines := strings.Repeat("a:\r\n", 900)
	up := peer.Listen(t, func(p *peer.Peer) {
		for first := p.N == 1; p.Request() != nil; first = false {
			p.Say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n%s\r\n", lines)
			assert.Eventually(t, func() bool { return !first || c.budget.Used() >= int64(900*(4+128)) }, patience, time.Millisecond)
			p.Say("ok")
		}
	})
	c = startSidecar(t, setup{upstreams: []string{up}, budget: 1})
	response, text := c.post("{}")
	assert.Equal(t, 200, response.StatusCode)
	assert.Equal(t, "ok", text)
	assert.Eventually(t, func() bool { return c.budget.Used() == 0 }, patience, time.Millisecond)

	taken := c.budget.All() - 100_000
	require.NoError(t, c.budget.Reserve(taken))
	defer c.budget.Return(taken)
	response, text = c.post("{}")
	assert.Equal(t, 502, response.StatusCode)
	assert.Contains(t, text, "no memory for the response header")
	assert.Empty(t, response.Header.Get("Retry-After"))
}

// After a burst, 64 connections to an upstream wait for jobs, for 50 s and up to a fifth more.
func TestIdleConnectionsToAnUpstream(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		const jobs = 70
		var all sync.WaitGroup
		var open atomic.Int64
		all.Add(jobs)
		up := m.upstream(t, "up:1", func(p *peer.Peer) {
			open.Add(1)
			defer open.Add(-1)
			for p.Request() != nil {
				all.Done()
				all.Wait() // at the same time
				p.Say(ok)
			}
		})
		startSidecar(t, setup{network: m, upstreams: []string{up}})
		var submitters sync.WaitGroup
		for range jobs {
			submitters.Go(func() { m.submit(t, "{}") })
		}
		submitters.Wait()
		synctest.Wait()
		assert.EqualValues(t, 64, open.Load())
		time.Sleep(45 * time.Second) // between two looks
		assert.EqualValues(t, 64, open.Load())
		time.Sleep(20 * time.Second)
		assert.Zero(t, open.Load())
	})
}

// What comes of a body that is beyond the budget, while its job waits for an upstream, is
// bounded for each HTTP/2 stream.
func TestBodiesThatWaitAreNotRead(t *testing.T) {
	const jobs, size = 8, 4 << 20
	c := startSidecar(t, setup{budget: 1, wait: time.Hour})
	var sent atomic.Int64
	var all sync.WaitGroup
	for range jobs {
		submit := h2c(t)
		all.Go(func() {
			res, err := submit.Post(c.url("/"), "text/plain", io.LimitReader(endless{&sent}, size))
			if assert.NoError(t, err) {
				assert.Equal(t, 200, res.StatusCode)
				_ = res.Body.Close()
			}
		})
	}
	last := int64(-1)
	require.Eventually(t, func() bool { // until nothing more is taken
		now := sent.Load()
		_, waiting := c.balancer.Counts()
		still := now == last && waiting == jobs
		last = now
		return still
	}, patience, 100*time.Millisecond)
	assert.Less(t, last, int64(jobs*512<<10), "its beginning, what is ahead of that, and what its submitter holds")
	c.balancer.Set([]pool.Upstream{{Address: serving(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })}})
	all.Wait()
	assert.EqualValues(t, jobs*size, sent.Load())
}

// endless counts what is read of it.
type endless struct{ read *atomic.Int64 }

func (e endless) Read(p []byte) (int, error) {
	clear(p)
	e.read.Add(int64(len(p)))
	return len(p), nil
}

// The memory of a body is free for other jobs as soon as its response begins.
func TestABodyIsGivenBackWhenItsResponseBegins(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		c := startSidecar(t, setup{network: m, upstreams: []string{m.upstream(t, "up:1", func(p *peer.Peer) {
			p.Request()
			time.Sleep(time.Second)
			p.Say("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")
			time.Sleep(time.Second)
			p.Say("half")
		})}})
		submitter := m.client(t)
		go func() {
			if res, err := submitter.Post("http://127.0.0.1:8080/v1/jobs", "application/json", reader("{}")); err == nil {
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
		}()
		synctest.Wait()
		assert.Positive(t, c.budget.Used())
		time.Sleep(1500 * time.Millisecond)
		assert.Zero(t, c.budget.Used())
		time.Sleep(time.Second)
		c.seen(1)
	})
}

// A panic within a job ends its lease like everything else.
func TestAPanicEndsTheLease(t *testing.T) {
	c := startSidecar(t, setup{
		upstreams: []string{answering(t, ok)},
		Config:    proxy.Config{Config: job.Config{Hint: func(http.Header, time.Time) (pool.Hint, error) { panic("a bug") }}},
	})
	s := c.connect()
	s.job("{}")
	assert.Zero(t, s.status())
	r := c.seen(1)[0]
	assert.Equal(t, intake.Broken, r.Outcome)
	inFlight, _ := c.balancer.Counts()
	assert.Zero(t, inFlight)
}
