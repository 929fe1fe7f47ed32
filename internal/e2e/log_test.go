package e2e

import (
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// logsTo starts a sidecar with one upstream, and with a file as standard error.
func logsTo(t *testing.T, stderr *os.File) *sidecar {
	t.Helper()
	jobs, admin := hold(t), hold(t)
	cmd := activated([]*os.File{jobs, admin}, "jobs:admin", "--upstream", echoing(t, "a"))
	cmd.Stderr = stderr
	s := &sidecar{t: t, cmd: cmd, ended: make(chan struct{}), jobs: addressOf(t, jobs), admin: addressOf(t, admin)}
	require.NoError(t, cmd.Start())
	go s.follow(strings.NewReader("")) // its log is written elsewhere
	t.Cleanup(s.kill)
	return s
}

// addressOf returns the address of a socket.
func addressOf(t *testing.T, socket *os.File) string {
	t.Helper()
	l, err := net.FileListener(socket)
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// submit posts jobs on 200 connections and requires a response to each.
func (s *sidecar) submit(jobs int) {
	s.t.Helper()
	const conns = 200
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns, IdleConnTimeout: idle}, Timeout: patience}
	defer client.CloseIdleConnections()
	var all sync.WaitGroup
	for range conns {
		all.Go(func() {
			for range jobs / conns {
				res, err := client.Post("http://"+s.jobs+"/v1/jobs", "application/json", strings.NewReader(`{"project_id": 1}`))
				if !assert.NoError(s.t, err) {
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				assert.Equal(s.t, http.StatusOK, res.StatusCode)
			}
		})
	}
	all.Wait()
}

// manyLines is more than the lines that fit into a pipe and the sidecar's buffer.
const manyLines = 4000

// Lines that cannot be written are dropped. Jobs are served, and SIGTERM ends the process.
func TestUnwritableLog(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) *os.File{
		"a pipe that nobody reads": func(t *testing.T) *os.File {
			r, w, err := os.Pipe()
			require.NoError(t, err)
			t.Cleanup(func() { _ = r.Close() })
			return w
		},
		"a closed pipe": func(t *testing.T) *os.File {
			r, w, err := os.Pipe()
			require.NoError(t, err)
			require.NoError(t, r.Close())
			return w
		},
		"a full disk": func(t *testing.T) *os.File {
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			require.NoError(t, err)
			return full
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stderr := open(t)
			s := logsTo(t, stderr)
			require.NoError(t, stderr.Close())
			s.submit(manyLines)
			assert.Positive(t, s.metric("pilotfish_log_lines_lost_total"))
			s.stop()
		})
	}
}
