package proxy_test

import (
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/hex"
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
)

const post = "POST / HTTP/1.1\r\nHost: localhost\r\n"

// A submitter that sends its whole body before it reads still gets the error response.
func TestTooLargeBodiesAreRefusedReadably(t *testing.T) {
	const limit = 1 << 20
	up := answering(t, ok)
	for name, tc := range map[string]struct {
		size   int
		head   string
		status int
	}{
		"the limit":           {limit, "Content-Length: %d\r\n\r\n", 200},
		"the limit in chunks": {limit, "", 200},
		"one more":            {limit + 1, "Content-Length: %d\r\n\r\n", 413},
		"one more in chunks":  {limit + 1, "", 413},
	} {
		t.Run(name, func(t *testing.T) {
			c := startSidecar(t, setup{upstreams: []string{up.address}, Config: proxy.Config{Config: job.Config{MaxBody: limit}}})
			s := c.connect()
			body, _ := jobOf(tc.size)
			s.say(post)
			if tc.head != "" {
				s.say(tc.head+"%s", tc.size, body)
			} else {
				s.say("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", tc.size, body)
			}
			res, answer := s.response()
			text, err := io.ReadAll(answer)
			require.NoError(t, err)
			assert.Equal(t, tc.status, res.StatusCode, string(text))
			if tc.status == 413 {
				assert.Equal(t, "body-too-large", c.seen(1)[0].Reason)
				assert.Contains(t, string(text), fmt.Sprint(limit))
			}
		})
	}
}

func TestBodiesOverTheBudgetAreServedOnce(t *testing.T) {
	body, _ := jobOf(1 << 20)
	up := serving(t, echo)
	dies := scripted(t, func(p *peer) { _ = p.request() })
	for name, tc := range map[string]struct {
		first    string
		status   int
		attempts int
	}{
		"served": {up, 200, 1},
		"retried while nothing of it was consumed": {refusing(t), 200, 2},
		"not after that": {dies.address, 502, 1},
	} {
		for _, sized := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, length %t", name, sized), func(t *testing.T) {
				c := startSidecar(t, setup{upstreams: []string{tc.first, up}, budget: 1})
				res, got := c.postAs("application/json", body, sized)
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

// What is passed on as it comes may be answered before it has all come, and
// may turn out too large only then.
func TestBodiesOverTheBudgetEndEarly(t *testing.T) {
	const limit = 2 << 20
	for name, tc := range map[string]struct {
		script func(*peer)
		size   int
		status int
	}{
		"an answer to the head": {func(p *peer) {
			_, _ = p.head()
			p.say("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno")
		}, limit, 403},
		"one byte too many": {func(p *peer) { p.request() }, limit + 1, 413},
	} {
		t.Run(name, func(t *testing.T) {
			c := startSidecar(t, setup{
				upstreams: []string{scripted(t, tc.script).address}, budget: 1, Config: proxy.Config{Config: job.Config{MaxBody: limit}},
			})
			body, _ := jobOf(tc.size)
			s := c.connect()
			s.say("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", post, tc.size, body)
			assert.Equal(t, tc.status, s.status(), "read only after everything was sent")
		})
	}
}

// A submitter that gets its response early, and neither sends the rest of its body nor leaves, sees the
// end of the connection at once, though an attempt still reads the body.
func TestTheRestOfABodyIsNotWaitedForLong(t *testing.T) {
	const sent = 500_000
	up := scripted(t, func(p *peer) {
		_, _ = p.head()
		_, _ = io.CopyN(io.Discard, p.in, sent) // now the attempt waits for more
		p.say("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
		p.gone()
	})
	c := startSidecar(t, setup{upstreams: []string{up.address}, budget: 1})
	s := c.connect()
	s.say("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n%s", strings.Repeat(" ", sent))
	assert.Equal(t, 503, s.status())
	_, err := s.rest()
	assert.NoError(t, err, "the connection ends")
	c.seen(1)
}

// The memory of a small body is used for the next job. No upstream gets anything of another
// job: not by a retry, and not where an answer begins while the body is still being sent.
func TestNoBodyHasBytesOfAnother(t *testing.T) {
	check := func(w http.ResponseWriter, r *http.Request) {
		hash := sha256.New()
		_, err := io.Copy(hash, r.Body)
		if err != nil || r.Header.Get("Sum") != hex.EncodeToString(hash.Sum(nil)) {
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
				padding := make([]byte, rng.IntN(20<<10))
				_, _ = crand.Read(padding)
				body := fmt.Sprintf(`{"project_id":%d,"padding":"%x"}`, rng.IntN(100), padding)
				r, err := http.NewRequest(http.MethodPost, c.url("/"), reader(body))
				if !assert.NoError(t, err) {
					return
				}
				r.Header.Set("Kind", []string{"", "refused", "early"}[rng.IntN(3)])
				r.Header.Set("Sum", fmt.Sprintf("%x", sha256.Sum256([]byte(body))))
				if rng.IntN(2) == 0 {
					r.ContentLength = -1
					r.Trailer = http.Header{"End": {"yes"}}
				}
				res, err := submit.Do(r)
				if !assert.NoError(t, err) {
					return
				}
				text, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if !assert.NoError(t, err) || !assert.Equal(t, "whole", string(text), "%d bytes, %v", len(body), r.Header) {
					return
				}
			}
		})
	}
	all.Wait()
}
