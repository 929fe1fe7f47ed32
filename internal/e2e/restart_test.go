package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const restarts = 5

// A process that holds the port, such as systemd, keeps it open between two sidecars:
// submitters wait for the next sidecar and are not refused.
func TestRestartUnderHeldPorts(t *testing.T) {
	t.Parallel()
	jobs, admin := hold(t), hold(t)
	args := []string{"--upstream", echoing(t, "a"), "--upstream", echoing(t, "b")}
	// A unit can use any names in any order.
	s := activate(t, []*os.File{admin, jobs}, "admin:jobs", args...)
	c := newCrowd(t, s)
	c.more(50)
	for range restarts {
		s.Stop()
		s = activate(t, []*os.File{jobs, admin}, "pilotfish.socket:pilotfish.socket", args...)
		c.more(50)
	}
	c.end()
	s.Stop()
}

// hold opens a port and returns its socket.
func hold(t *testing.T) *os.File {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	f, err := l.(*net.TCPListener).File()
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// If no other process holds the port, the next sidecar opens it before the last one gets
// SIGTERM.
func TestRestartBySharedPorts(t *testing.T) {
	t.Parallel()
	args := append(options(t, "", echoing(t, "a"), echoing(t, "b")), "--reuse-port")
	s := start(t, args...)
	args = append(args, "--listen", s.jobs, "--admin", s.admin)
	c := newCrowd(t, s)
	c.more(50)
	for i := range restarts {
		next := start(t, args...)
		if i == 1 { // the older process goes on
			s, next = next, s
		}
		s.Stop()
		s = next
		c.more(50)
	}
	c.end()
	s.Stop()
}

// Package ports tests the purposes of sockets; here the process must refuse a file that is not a
// socket.
func TestSocketActivationRefusesAFile(t *testing.T) {
	t.Parallel()
	out, err := activated([]*os.File{os.Stdin}, "jobs", "--upstream", "127.0.0.1:1").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), `socket activation: socket "jobs": `)
}

// crowd is ten submitters that each post one job after another to echoing upstreams. Two keep their connections between
// jobs.
type crowd struct {
	t        *testing.T
	over     chan struct{}
	wg       sync.WaitGroup
	answered atomic.Int64
}

func newCrowd(t *testing.T, s *sidecar) *crowd {
	c := &crowd{t: t, over: make(chan struct{})}
	url := "http://" + s.jobs + "/v1/jobs"
	for who := range 10 {
		c.wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: who > 1}}
			defer client.CloseIdleConnections()
			pace := time.NewTicker(4 * time.Millisecond)
			defer pace.Stop()
			for i := 0; ; i++ {
				select {
				case <-c.over:
					return
				case <-pace.C:
				}
				body := fmt.Sprintf(`{"project_id": 12345, "session_id": "%d-%d"}`, who, i)
				r := callBy(t, client, http.MethodPost, url, body)
				if assert.Equal(t, body, r.text, "submitter %d, status %d", who, r.status) {
					c.answered.Add(1)
				}
			}
		})
	}
	return c
}

// more waits for the responses of this many further jobs.
func (c *crowd) more(jobs int64) {
	c.t.Helper()
	advances(c.t, c.answered.Load, c.answered.Load()+jobs, "jobs are not answered anymore")
}

// end stops the submitters.
func (c *crowd) end() {
	close(c.over)
	c.wg.Wait()
}
