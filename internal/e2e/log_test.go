package e2e

import (
	"net"
	"net/http"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/program"
)

// logsTo starts a sidecar with one upstream, and with a file as standard error.
func logsTo(t *testing.T, stderr *os.File) *sidecar {
	t.Helper()
	jobs, admin := hold(t), hold(t)
	cmd := activated([]*os.File{jobs, admin}, "jobs:admin", "--upstream", echoing(t, "a"))
	cmd.Stderr = stderr
	return &sidecar{Sidecar: program.Start(t, cmd, nil), t: t, jobs: addressOf(t, jobs), admin: addressOf(t, admin)}
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
				assert.Equal(s.t, http.StatusOK, callBy(s.t, client, http.MethodPost, "http://"+s.jobs+"/v1/jobs", `{"project_id": 1}`).status)
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
	pipe := func(close bool) func() (*os.File, error) {
		return func() (*os.File, error) {
			r, w, err := os.Pipe()
			if close {
				_ = r.Close()
			}
			t.Cleanup(func() { _ = r.Close() })
			return w, err
		}
	}
	for name, open := range map[string]func() (*os.File, error){
		"a pipe that nobody reads": pipe(false),
		"a closed pipe":            pipe(true),
		"a full disk":              func() (*os.File, error) { return os.OpenFile("/dev/full", os.O_WRONLY, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stderr, err := open()
			require.NoError(t, err)
			s := logsTo(t, stderr)
			require.NoError(t, stderr.Close())
			s.submit(manyLines)
			assert.Positive(t, s.metric("pilotfish_log_lines_lost_total"))
			s.Stop()
		})
	}
}
