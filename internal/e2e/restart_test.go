package e2e

import (
	"net"
	"os"
	"os/exec"
	"testing"

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
	c := newCrowd(s.jobs)
	c.more(t, 50)
	for range restarts {
		s.stop()
		s = activate(t, []*os.File{jobs, admin}, "pilotfish.socket:pilotfish.socket", args...)
		c.more(t, 50)
	}
	assert.Empty(t, c.end())
	s.stop()
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
	args := []string{"--reuse-port", "--upstream", echoing(t, "a"), "--upstream", echoing(t, "b")}
	s := start(t, append(args, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")...)
	args = append(args, "--listen", s.jobs, "--admin", s.admin)
	c := newCrowd(s.jobs)
	c.more(t, 50)
	for range restarts {
		next := start(t, args...)
		s.stop()
		s = next
		c.more(t, 50)
	}
	assert.Empty(t, c.end())
	s.stop()
}

func TestPortsAreNotSharedByMistake(t *testing.T) {
	t.Parallel()
	a := echoing(t, "a")
	s := start(t, "--upstream", a, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	out, err := exec.Command(program, "serve", "--reuse-port",
		"--upstream", a, "--listen", s.jobs, "--admin", "127.0.0.1:0").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "cannot listen on "+s.jobs)
	assert.Contains(t, string(out), "address already in use")
	assert.Contains(t, string(out), "--listen")
}

// Package ports tests the purposes of sockets; here the process must refuse a file that is not a
// socket.
func TestSocketActivationRefusesAFile(t *testing.T) {
	t.Parallel()
	out, err := activated([]*os.File{os.Stdin}, "jobs", "--upstream", "127.0.0.1:1").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), `socket activation: socket "jobs": `)
}
