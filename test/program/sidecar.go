package program

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tick is how often a condition is checked.
const tick = 5 * time.Millisecond

// Sidecar is a pilotfish process.
type Sidecar struct {
	Cmd         *exec.Cmd
	Jobs, Admin string        // the host:port of its ports
	Ended       chan struct{} // closed when the process has ended

	t     testing.TB
	code  int // exit code, after Ended
	onJob func([]byte)

	mu  sync.Mutex
	log []Line // lines of the log, except those of jobs
}

// Line is a line of the sidecar's log.
type Line map[string]any

// Launch starts a sidecar and waits until it serves. It passes the log lines of jobs to onJob, if it is not nil.
func Launch(t testing.TB, cmd *exec.Cmd, onJob func([]byte)) *Sidecar {
	t.Helper()
	s := Start(t, cmd, onJob)
	serving := s.Await("serving")
	s.Jobs, s.Admin = serving["jobs"].(string), serving["admin"].(string)
	return s
}

// Start starts a sidecar, and does not wait until it serves: if the command has a standard error, the log is written there.
func Start(t testing.TB, cmd *exec.Cmd, onJob func([]byte)) *Sidecar {
	t.Helper()
	s := &Sidecar{Cmd: cmd, Ended: make(chan struct{}), t: t, onJob: onJob}
	var stderr io.Reader = strings.NewReader("")
	if cmd.Stderr == nil {
		var err error
		stderr, err = cmd.StderrPipe()
		require.NoError(t, err)
	}
	require.NoError(t, cmd.Start())
	t.Cleanup(s.kill)
	go s.follow(stderr)
	return s
}

// Serve runs pilotfish serve until the test ends.
func Serve(t testing.TB, path string, args ...string) *Sidecar {
	t.Helper()
	return Launch(t, exec.Command(path, append([]string{"serve"}, args...)...), nil)
}

// follow reads the log to its end, and then the exit code.
func (s *Sidecar) follow(stderr io.Reader) {
	defer close(s.Ended)
	scanner := bufio.NewScanner(stderr)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		l := Line{}
		if json.Unmarshal(scanner.Bytes(), &l) != nil {
			l["msg"] = scanner.Text()
		}
		if l["msg"] == "job" {
			if s.onJob != nil {
				s.onJob(scanner.Bytes())
			}
			continue
		}
		s.mu.Lock()
		s.log = append(s.log, l)
		s.mu.Unlock()
	}
	_ = s.Cmd.Wait() // the exit code is the result
	s.code = s.Cmd.ProcessState.ExitCode()
}

// Logged returns the lines of the log that contain msg.
func (s *Sidecar) Logged(msg string) []Line {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Line
	for _, l := range s.log {
		if text, _ := l["msg"].(string); strings.Contains(text, msg) {
			found = append(found, l)
		}
	}
	return found
}

// Await waits for a line of the log, and returns the last.
func (s *Sidecar) Await(msg string) Line {
	s.t.Helper()
	over := func() bool {
		select {
		case <-s.Ended:
			return true
		default:
			return len(s.Logged(msg)) > 0
		}
	}
	require.Eventually(s.t, over, patience, tick, "%q was not logged", msg)
	found := s.Logged(msg)
	require.NotEmpty(s.t, found, "the sidecar ended without having logged %q", msg)
	return found[len(found)-1]
}

// Signal sends a signal to the process.
func (s *Sidecar) Signal(sig os.Signal) {
	s.t.Helper()
	require.NoError(s.t, s.Cmd.Process.Signal(sig))
}

// Exit waits for the end of the process and returns its exit code.
func (s *Sidecar) Exit() int {
	s.t.Helper()
	select {
	case <-s.Ended:
	case <-time.After(patience):
		require.FailNow(s.t, "the sidecar does not end")
	}
	return s.code
}

// Stop sends SIGTERM to the sidecar and expects exit code 0.
func (s *Sidecar) Stop() {
	s.t.Helper()
	s.Signal(syscall.SIGTERM)
	require.Equal(s.t, 0, s.Exit())
}

// kill kills the process, and prints its log if the test has failed.
func (s *Sidecar) kill() {
	_ = s.Cmd.Process.Kill() // fails if the process has ended
	<-s.Ended
	if s.t.Failed() {
		for _, l := range s.Logged("") {
			s.t.Log(l)
		}
	}
}
