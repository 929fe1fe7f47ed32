//go:build cluster || mesh || soak

package e2e

import (
	"context"
	"crypto/sha256"
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
)

// steadyProjects is the number of projects that steady submitters use.
const steadyProjects = 40

// submitters post jobs to a sidecar and enter every response in a ledger.
type submitters struct {
	url    string
	ledger *ledger
	steady bool // small jobs always use the projects 1 to steadyProjects

	clients []*http.Transport
	number  atomic.Int64 // of posted jobs
	ended   atomic.Int64 // of them
}

// newSubmitters returns n submitters with separate connections.
func newSubmitters(t *testing.T, address string, l *ledger, n int) *submitters {
	s := &submitters{url: "http://" + address + "/v1/jobs", ledger: l}
	for range n {
		c := &http.Transport{MaxIdleConnsPerHost: 100, IdleConnTimeout: idle}
		t.Cleanup(c.CloseIdleConnections)
		s.clients = append(s.clients, c)
	}
	return s
}

// pace posts jobs at an interval, without waiting for responses. The returned function stops
// that and waits for the last response.
func (s *submitters) pace(every time.Duration) (stop func()) {
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		due := time.NewTicker(every)
		defer due.Stop()
		for {
			select {
			case <-over:
				return
			case <-due.C:
				wg.Go(s.small)
			}
		}
	})
	return sync.OnceFunc(func() {
		close(over)
		wg.Wait()
	})
}

// more waits until this many further jobs have ended.
func (s *submitters) more(t *testing.T, jobs int64) {
	t.Helper()
	advances(t, s.ended.Load, s.ended.Load()+jobs, "jobs do not end anymore")
}

// small posts a job of a small project. Every fourth job has timeouts longer than the pause of
// its server: otherwise a server that continues would report the job as failed.
func (s *submitters) small() {
	n := s.number.Add(1)
	more := ""
	if n%4 == 0 {
		more = `, "timeouts": {"queue_seconds": 100, "evaluate_seconds": 100, "stream_seconds": 100}`
	}
	// 40 projects at a time, and a new one after every 20 jobs.
	project := int(n/20+n*7%40)%smallProjects + 1
	if s.steady {
		project = int(n*7%steadyProjects) + 1
	}
	session, response, a := s.post(s.clients[n%int64(len(s.clients))], n, project, more)
	s.finish(session, response, project, a)
}

// post posts a job and returns the head of its response, if there is one.
func (s *submitters) post(by http.RoundTripper, n int64, project int, more string) (session string, response *http.Response, a answer) {
	session = fmt.Sprintf("job-%d", n)
	body := job(session, project, [...]string{"low", "high"}[n%2], more)
	r, err := http.NewRequest(http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.GetBody = nil // so that the transport never retries it
	r.Header.Set("Accept", "text/csv")
	a = answer{sent: time.Now()}
	response, a.cut = by.RoundTrip(r)
	if a.cut == nil {
		a.status, a.upstream = response.StatusCode, response.Header.Get("Pilotfish-Upstream")
	}
	return session, response, a
}

// finish reads a response to its end and enters it.
func (s *submitters) finish(session string, response *http.Response, project int, a answer) answer {
	if response != nil {
		hash := sha256.New()
		_, a.cut = io.Copy(hash, response.Body)
		_ = response.Body.Close()
		a.right = [sha256.Size]byte(hash.Sum(nil)) == rightAnswer(session, project)
	}
	a.ended = time.Now()
	s.ledger.enter(session, a)
	s.ended.Add(1)
	return a
}

// stream is a long response that has begun and is not read.
type stream struct {
	session  string
	upstream string
	// rest reads the response to its end.
	rest func() answer
	// leave disconnects.
	leave func()
}

// begin posts a job whose response does not end before it is read.
func (s *submitters) begin(t *testing.T, project int) stream {
	t.Helper()
	slow := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			err = c.(*net.TCPConn).SetReadBuffer(64 << 10)
		}
		return c, err
	}}
	t.Cleanup(slow.CloseIdleConnections)
	session, response, a := s.post(slow, s.number.Add(1), project, "") //nolint:bodyclose // finish closes it
	require.NoError(t, a.cut)
	assert.Equal(t, http.StatusOK, a.status)
	return stream{
		session:  session,
		upstream: a.upstream,
		rest:     func() answer { return s.finish(session, response, project, a) },
		leave:    func() { _ = response.Body.Close() },
	}
}
