package proxy_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy"
)

// Submitters leave 10,000 times, before and within responses, and upstreams cut
// answers short: nothing of that may stay behind.
func TestTenThousandAbortsLeaveNothingBehind(t *testing.T) {
	up := scripted(t, func(p *peer) {
		r := p.request()
		switch {
		case r == nil:
			return
		case r.URL.Path == "/within":
			p.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n")
			p.gone()
		case r.URL.Path == "/cut":
			p.say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nsome")
		default:
			p.gone()
		}
		p.reset() // or the kernel would remember the connection for a minute
	})
	c := startSidecar(t, setup{upstreams: []string{up.address}})
	abort := func(path string) {
		conn, err := net.Dial("tcp", c.address)
		if err != nil {
			t.Errorf("connecting: %v", err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
		if path != "/before" {
			_, _ = io.ReadAtLeast(conn, make([]byte, 1024), 20)
		}
		_ = conn.(*net.TCPConn).SetLinger(0)
	}
	const aborts = 10_000
	goroutines, descriptors := runtime.NumGoroutine(), openFiles(t)
	var left atomic.Int64
	left.Store(aborts)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := left.Add(-1); i >= 0; i = left.Add(-1) {
				abort([]string{"/before", "/within", "/cut"}[i%3])
			}
		})
	}
	all.Wait()
	c.seen(aborts)
	ok := func() bool {
		inFlight, waiting := c.balancer.Counts()
		c.handler.Close() // a connection that was dialled for a job that left is kept for the next one
		return runtime.NumGoroutine() <= goroutines+5 && openFiles(t) <= descriptors+5 && inFlight+waiting == 0 && c.budget.Used() == 0
	}
	if !assert.Eventually(t, ok, patience, 10*time.Millisecond) {
		var stacks bytes.Buffer
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
		t.Logf("%d goroutines, were %d; %d descriptors, were %d\n%s", runtime.NumGoroutine(), goroutines, openFiles(t), descriptors, &stacks)
	}
}

func openFiles(t *testing.T) int {
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(files)
}

// A panic within a job ends its lease like everything else.
func TestAPanicEndsTheLease(t *testing.T) {
	c := startSidecar(t, setup{
		upstreams: []string{answering(t, ok).address},
		Config:    proxy.Config{Config: job.Config{Hint: func(http.Header, time.Time) (pool.Hint, bool) { panic("a bug") }}},
	})
	s := c.connect()
	s.job("{}")
	assert.Zero(t, s.status())
	r := c.seen(1)[0]
	assert.Equal(t, intake.Broken, r.Outcome)
	inFlight, _ := c.balancer.Counts()
	assert.Zero(t, inFlight)
}
