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
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy"
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
	c := startSidecar(t, setup{upstreams: []string{answering(t, ok).address}, budget: 16 << 20, Config: proxy.Config{BodyIdle: time.Hour}})
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

// longHead is the beginning of a head, of about so many bytes.
func longHead(bytes int) string {
	var text strings.Builder
	text.WriteString("POST / HTTP/1.1\r\nHost: localhost\r\n")
	for i := 0; text.Len() < bytes; i++ {
		fmt.Fprintf(&text, "X-%d: y\r\n", i)
	}
	return text.String()
}

// All heads that do not end have one bound. Short heads have room beside them.
func TestHeadsThatDoNotEndStayWithinTheirBound(t *testing.T) {
	arriving := proxy.NewHeads(2 << 20)
	c := startSidecar(t, setup{upstreams: []string{answering(t, ok).address}, server: proxy.ServerConfig{Arriving: arriving}})
	var all sync.WaitGroup
	var open []*submitter
	for range 100 {
		s := c.connect()
		open = append(open, s)
		all.Go(func() { s.say("%s", longHead(25_000)) })
	}
	all.Wait()
	require.Eventually(t, func() bool { return arriving.Refused() > 50 }, patience, time.Millisecond)
	assert.LessOrEqual(t, arriving.Used(), int64(2<<20))
	s := c.connect()
	s.job("{}")
	assert.Equal(t, 200, s.status(), "a short head needs no room")
	for _, s := range open {
		_ = s.Close()
	}
	assert.Eventually(t, func() bool { return arriving.Used() == 0 }, patience, time.Millisecond, "all was given back")
}

// A method that looks like the beginning of HTTP/2 keeps no head from being counted.
func TestHeadsThatBeginLikeHTTP2Count(t *testing.T) {
	arriving := proxy.NewHeads(2 << 20)
	c := startSidecar(t, setup{server: proxy.ServerConfig{Arriving: arriving}})
	s := c.connect()
	s.say("PRINT%s", strings.TrimPrefix(longHead(25_000), "POST"))
	require.Eventually(t, func() bool { return arriving.Used() > 20_000 }, patience, time.Millisecond)
}

// HTTP/2 does not count, however its preface comes.
func TestHTTP2CountsNotAsAHead(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory) {
		arriving := proxy.NewHeads(2 << 20)
		startSidecar(t, setup{network: m, server: proxy.ServerConfig{Arriving: arriving}})
		conn, err := m.Dial(t.Context(), "tcp", "127.0.0.1:8080")
		require.NoError(t, err)
		defer conn.Close()
		go io.Copy(io.Discard, conn) // until the connection is closed
		for _, piece := range []string{http2.ClientPreface[:2], http2.ClientPreface[2:20], http2.ClientPreface[20:]} {
			_, err = io.WriteString(conn, piece)
			require.NoError(t, err)
		}
		f := http2.NewFramer(conn, nil)
		require.NoError(t, f.WriteSettings())
		for range 1000 {
			require.NoError(t, f.WritePing(false, [8]byte{}))
		}
		assert.Zero(t, arriving.Used())
	})
}

// A head that finds no room is told so. Heads that end leave nothing behind, on a
// connection that goes on.
func TestAHeadThatFindsNoRoom(t *testing.T) {
	arriving := proxy.NewHeads(1 << 20)
	c := startSidecar(t, setup{upstreams: []string{answering(t, ok).address}, server: proxy.ServerConfig{
		MaxHeader: 1 << 20, Arriving: arriving,
	}})
	s := c.connect()
	for range 20 {
		s.say("%sContent-Length: 2\r\n\r\n{}", longHead(20_000))
		require.Equal(t, 200, s.status())
		assert.Zero(t, arriving.Used())
	}
	s.say("%s", longHead(100_000))
	head, _ := s.response()
	assert.Equal(t, http.StatusServiceUnavailable, head.StatusCode)
	assert.Equal(t, "no-room", head.Header.Get("Pilotfish-Reason"))
	assert.Equal(t, "1", head.Header.Get("Retry-After"))
	rest, err := io.ReadAll(s.in)
	assert.NoError(t, err, "what still comes is read, so that the answer is not lost")
	assert.NotContains(t, string(rest), "HTTP/1.1", "the 503 is the only answer")
	assert.EqualValues(t, 1, arriving.Refused())
	c.seen(20)
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
