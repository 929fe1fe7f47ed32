package proxy_test

import (
	crand "crypto/rand"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/test/peer"
)

const post = "POST / HTTP/1.1\r\nHost: localhost\r\n"

func TestBodiesOverTheBudgetAreServedOnce(t *testing.T) {
	body, _ := jobOf(1 << 20)
	up := serving(t, echo)
	dies := peer.Listen(t, func(p *peer.Peer) { _ = p.Request() })
	for name, tc := range map[string]struct {
		first    string
		status   int
		attempts int
	}{
		"served": {up, 200, 1},
		"retried while nothing of it was consumed": {refusing(t), 200, 2},
		"not after that": {dies, 502, 1},
	} {
		for how, submit := range map[string]func(c *sidecar) (reply, string){
			"a length": func(c *sidecar) (reply, string) { return c.post(body) },
			"chunks": func(c *sidecar) (reply, string) {
				return c.send(client(t), unsized{reader(body)}, "Content-Type", "application/json")
			},
			"h2c": func(c *sidecar) (reply, string) {
				return c.send(h2c(t), reader(body), "Content-Type", "application/json")
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				c := startSidecar(t, setup{upstreams: []string{tc.first, up}, budget: 1})
				res, got := submit(c)
				assert.Equal(t, tc.status, res.StatusCode)
				if tc.status == 200 {
					assert.Equal(t, digest(body), digest(got))
				}
				record := c.seen(1)[0]
				assert.True(t, record.Unkept)
				assert.Equal(t, "7", record.Facts.Project)
				assert.Len(t, record.Attempts, tc.attempts)
			})
		}
	}
}

// The response to a body that is forwarded as it arrives can come before the body's end, and the body can turn out too
// large only then. The submitter sends all of it, and then reads.
func TestBodiesOverTheBudgetEndEarly(t *testing.T) {
	const limit = 2 << 20
	for name, tc := range map[string]struct {
		script func(*peer.Peer)
		size   int
		status int
	}{
		"a response to the head": {func(p *peer.Peer) {
			_, _ = p.Head()
			p.Say("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno")
		}, limit, 403},
		"one byte too many": {func(p *peer.Peer) { p.Request() }, limit + 1, 413},
	} {
		t.Run(name, func(t *testing.T) {
			c := startSidecar(t, setup{
				upstreams: []string{peer.Listen(t, tc.script)}, budget: 1, Config: proxy.Config{Config: job.Config{MaxBody: limit}},
			})
			body, _ := jobOf(tc.size)
			s := c.connect()
			s.say("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", post, tc.size, body)
			assert.Equal(t, tc.status, s.status())
		})
	}
}

// A submitter that gets its response early, and does not send the rest of its body, sees the end of the exchange at once,
// though an attempt still reads the body. Over HTTP/2, the deadlines of that read would end the process: net/http has
// forgotten the stream.
func TestTheRestOfABodyIsNotWaitedFor(t *testing.T) {
	const sent = 500_000
	up := peer.Listen(t, func(p *peer.Peer) {
		_, _ = p.Head()
		_, _ = io.CopyN(io.Discard, p.In, sent) // now the attempt waits for more
		p.Say(ok)
		p.Gone()
	})
	c := startSidecar(t, setup{upstreams: []string{up}, budget: 1})
	s := c.connect()
	s.say("%sContent-Length: 1000000\r\n\r\n%s", post, strings.Repeat(" ", sent))
	assert.Equal(t, 200, s.status())
	_, err := s.rest()
	assert.NoError(t, err, "the connection ends")
	submit := h2c(t)
	for range 5 {
		body, rest := io.Pipe()
		go func() { _, _ = io.WriteString(rest, strings.Repeat(" ", sent)) }()
		res, err := submit.Post(c.url("/"), "text/plain", body)
		require.NoError(t, err)
		assert.Equal(t, 200, res.StatusCode)
		_, _ = res.Body.Close(), rest.Close()
	}
	c.seen(6)
}

// Each body arrives whole and with its length, after a retry too. The memory of a small body is used for the next job, but
// no upstream gets anything of another job, not even if the response begins while the body is still being sent.
func TestNoBodyHasBytesOfAnother(t *testing.T) {
	check := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.ContentLength < 0 || r.Header.Get("Sum") != digest(string(body)) {
			_, _ = io.WriteString(w, "another")
			return
		}
		_, _ = io.WriteString(w, "whole")
	}
	first := serving(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Kind") {
		case "refused":
			w.Header().Set("Job-Started", "no")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case "early":
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).EnableFullDuplex()
			_ = http.NewResponseController(w).Flush()
		}
		check(w, r)
	})
	c := startSidecar(t, setup{upstreams: []string{first, serving(t, check)}})
	submit := client(t)
	var all sync.WaitGroup
	for worker := range 16 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(worker)))
			for range 60 {
				padding := make([]byte, rng.IntN(rng.IntN(4)*8<<10+1))
				if rng.IntN(20) == 0 {
					padding = make([]byte, 1<<20)
				}
				_, _ = crand.Read(padding)
				body := fmt.Sprintf(`{"project_id":%d,"padding":"%x"}`, rng.IntN(100), padding)
				sent, kind := reader(body), []string{"", "refused", "early"}[rng.IntN(3)]
				if rng.IntN(2) == 0 {
					sent = unsized{sent}
				}
				_, text := c.send(submit, sent, "Kind", kind, "Sum", digest(body))
				if !assert.Equal(t, "whole", text, "%d bytes, %s", len(body), kind) {
					return
				}
			}
		})
	}
	all.Wait()
}
