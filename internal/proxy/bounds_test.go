package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
)

// halfSend begins jobs on an HTTP/2 connection, each with a body that does not go on.
// All have begun when it returns.
func halfSend(c net.Conn, host string, jobs int) error {
	begun := make(chan struct{})
	go func() {
		defer close(begun)
		for in := http2.NewFramer(io.Discard, c); ; {
			switch f, err := in.ReadFrame(); {
			case err != nil:
				return
			case f.Header().Type == http2.FramePing:
				go io.Copy(io.Discard, c) // until the connection is closed
				return
			}
		}
	}()
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		return err
	}
	var head bytes.Buffer
	encoder := hpack.NewEncoder(&head)
	f := http2.NewFramer(c, nil)
	if err := f.WriteSettings(); err != nil {
		return err
	}
	for i := range uint32(jobs) {
		head.Reset()
		for _, h := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", host}, {":path", "/"}, {"content-length", "1000000"}} {
			_ = encoder.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}) // a buffer takes all
		}
		if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: head.Bytes(), EndHeaders: true}); err != nil {
			return err
		}
		if err := f.WriteData(2*i+1, false, []byte(`{"project_id":`)); err != nil {
			return err
		}
	}
	if err := f.WritePing(false, [8]byte{}); err != nil {
		return err
	}
	<-begun
	return nil
}

// The budget for bodies holds while they arrive, however many come and whatever
// length they declare. Jobs that find no room are told to come again.
func TestHalfSentBodiesStayWithinTheBudget(t *testing.T) {
	c := startSidecar(t, setup{upstreams: []string{answering(t, ok).address}, budget: 16 << 20, bodyIdle: time.Hour})
	const conns, jobs = 24, 250 // the race detector bears no more
	var open []net.Conn
	for range conns {
		conn, err := net.Dial("tcp", c.address)
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, halfSend(conn, c.address, jobs))
		open = append(open, conn)
	}
	const first = 4 << 10 // what a body takes first
	require.Eventually(t, func() bool { return c.budget.Used() > c.budget.All()-first }, patience, time.Millisecond)
	head, text := c.post(strings.Repeat(" ", 10_000) + "{}")
	assert.Equal(t, 503, head.StatusCode, text)
	assert.Equal(t, "no-room", head.Header.Get("Pilotfish-Reason"))
	assert.Equal(t, "1", head.Header.Get("Retry-After"))
	assert.LessOrEqual(t, c.budget.Used(), c.budget.All())
	for _, conn := range open {
		_ = conn.Close()
	}
	outcomes := map[intake.Outcome]int{}
	for _, r := range c.seen(conns*jobs + 1) {
		outcomes[r.Outcome]++
	}
	assert.Zero(t, c.budget.Used())
	assert.Len(t, outcomes, 2)
	assert.Greater(t, outcomes[intake.Shed], 1000)
	assert.Greater(t, outcomes[intake.Gone], 1000, "a body that declares much takes little until it comes")
	head, _ = c.post("{}")
	assert.Equal(t, 200, head.StatusCode)
}

// A head has a bound of its own. The rest of one that is longer is not read.
func TestAHeadThatIsTooLong(t *testing.T) {
	c := startSidecar(t, setup{upstreams: []string{answering(t, ok).address}})
	for size, want := range map[int]int{30_000: 200, 40_000: http.StatusRequestHeaderFieldsTooLarge} {
		s := c.connect()
		s.say("GET / HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n", strings.Repeat("x", size))
		assert.Equal(t, want, s.status())
	}
}

// A long head counts for as long as its job is under way, like a body.
func TestLongHeadsCountInTheBudget(t *testing.T) {
	for proto, newClient := range map[string]func(testing.TB) *http.Client{"HTTP/1.1": client, "HTTP/2.0": h2c} {
		var c *sidecar
		up := serving(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprint(w, c.budget.Used() > 15_000)
		})
		c = startSidecar(t, setup{upstreams: []string{up}, budget: 1})
		submit := newClient(t) // after the sidecar, whose end would wait for its connections
		for size, want := range map[int]string{100: "false", 15_000: "true"} {
			r, err := http.NewRequest("POST", c.url("/"), strings.NewReader("{}"))
			require.NoError(t, err)
			r.Header.Set("X-Long", strings.Repeat("x", size))
			res, err := submit.Do(r)
			require.NoError(t, err)
			text, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			assert.NoError(t, res.Body.Close())
			assert.Equal(t, proto, res.Proto)
			assert.Equal(t, want, string(text))
		}
	}
}

// So does the head of its answer. Where there is no room for it, the job is not sent again.
func TestLongHeadsOfAnswersCountInTheBudget(t *testing.T) {
	var c *sidecar
	lines := strings.Repeat("a:\r\n", 900)
	up := scripted(t, func(p *peer) {
		for p.request() != nil {
			p.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n%s\r\n", lines)
			assert.Eventually(t, func() bool { return c.budget.Used() >= int64(900*(4+128)) }, patience, time.Millisecond)
			p.say("ok")
		}
	})
	c = startSidecar(t, setup{upstreams: []string{up.address}, budget: 1})
	response, text := c.post("{}")
	assert.Equal(t, 200, response.StatusCode)
	assert.Equal(t, "ok", text)
	assert.Eventually(t, func() bool { return c.budget.Used() == 0 }, patience, time.Millisecond)

	taken := c.budget.All() - 100_000
	require.NoError(t, c.budget.Reserve(taken))
	defer c.budget.Return(taken)
	response, text = c.post("{}")
	assert.Equal(t, 502, response.StatusCode)
	assert.Contains(t, text, "the memory for the head of its answer")
	assert.Empty(t, response.Header.Get("Retry-After"))
}

// After a burst, 64 connections to an upstream wait for jobs, for 50 s and up to a fifth more.
func TestIdleConnectionsToAnUpstream(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		const jobs = 70
		var all sync.WaitGroup
		all.Add(jobs)
		up := m.upstream(t, "up:1", func(p *peer) {
			for p.request() != nil {
				all.Done()
				all.Wait() // at the same time
				p.say(ok)
			}
		})
		c := startSidecar(t, setup{network: m, upstreams: []string{up}})
		var submitters sync.WaitGroup
		for range jobs {
			submitters.Go(func() { m.submit(t, "{}") })
		}
		submitters.Wait()
		synctest.Wait()
		assert.Equal(t, 64, c.handler.Idle()[up])
		time.Sleep(45 * time.Second) // between two looks
		assert.Equal(t, 64, c.handler.Idle()[up])
		time.Sleep(20 * time.Second)
		assert.Zero(t, c.handler.Idle()[up])
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
