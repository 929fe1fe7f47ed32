package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sidecar is a pilotfish process.
type sidecar struct {
	t     *testing.T
	cmd   *exec.Cmd
	jobs  string // host:port
	admin string

	ended chan struct{} // closed when the process has ended
	code  int           // exit code, after that

	mu    sync.Mutex
	log   []line       // lines of the log, except those of jobs
	onJob func([]byte) // receives the lines of jobs
}

// line is a line of the sidecar's log.
type line map[string]any

// start runs pilotfish serve and waits until it serves.
func start(t *testing.T, args ...string) *sidecar {
	t.Helper()
	return launch(t, exec.Command(program, append([]string{"serve"}, args...)...))
}

// activate runs pilotfish serve with sockets as systemd passes them.
func activate(t *testing.T, sockets []*os.File, names string, args ...string) *sidecar {
	t.Helper()
	return launch(t, activated(sockets, names, args...))
}

func activated(sockets []*os.File, names string, args ...string) *exec.Cmd {
	// The protocol requires the process's own PID, which its parent knows too late.
	cmd := exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ exec "$0" serve "$@"`, program}, args...)...)
	cmd.ExtraFiles = sockets
	cmd.Env = append(os.Environ(), "LISTEN_FDS="+strconv.Itoa(len(sockets)), "LISTEN_FDNAMES="+names)
	return cmd
}

func launch(t *testing.T, cmd *exec.Cmd) *sidecar {
	t.Helper()
	return launchWith(t, cmd, func([]byte) {})
}

// launchWith also passes the log lines of jobs to onJob.
func launchWith(t *testing.T, cmd *exec.Cmd, onJob func([]byte)) *sidecar {
	t.Helper()
	s := &sidecar{t: t, cmd: cmd, onJob: onJob, ended: make(chan struct{})}
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(s.kill)
	go s.follow(stderr)
	serving := s.await("serving")
	s.jobs, s.admin = serving["jobs"].(string), serving["admin"].(string)
	return s
}

// follow reads the log to its end, and then the exit code.
func (s *sidecar) follow(stderr io.Reader) {
	defer close(s.ended)
	scanner := bufio.NewScanner(stderr)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		l := line{}
		if json.Unmarshal(scanner.Bytes(), &l) != nil {
			l["msg"] = scanner.Text()
		}
		if l["msg"] == "job" {
			s.onJob(scanner.Bytes())
			continue
		}
		s.mu.Lock()
		s.log = append(s.log, l)
		s.mu.Unlock()
	}
	_ = s.cmd.Wait() // the exit code is the result
	s.code = s.cmd.ProcessState.ExitCode()
}

// logged returns the lines of the log that contain msg.
func (s *sidecar) logged(msg string) []line {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []line
	for _, l := range s.log {
		if text, _ := l["msg"].(string); strings.Contains(text, msg) {
			found = append(found, l)
		}
	}
	return found
}

// await waits for a line of the log, and returns the last.
func (s *sidecar) await(msg string) line {
	s.t.Helper()
	over := func() bool {
		select {
		case <-s.ended:
			return true
		default:
			return len(s.logged(msg)) > 0
		}
	}
	require.Eventually(s.t, over, patience, tick, "%q was not logged", msg)
	found := s.logged(msg)
	require.NotEmpty(s.t, found, "the sidecar ended without having logged %q", msg)
	return found[len(found)-1]
}

func (s *sidecar) signal(sig os.Signal) {
	s.t.Helper()
	require.NoError(s.t, s.cmd.Process.Signal(sig))
}

// exit waits for the end of the process and returns its exit code.
func (s *sidecar) exit() int {
	s.t.Helper()
	select {
	case <-s.ended:
	case <-time.After(patience):
		require.FailNow(s.t, "the sidecar does not end")
	}
	return s.code
}

// stop sends SIGTERM to the sidecar and expects exit code 0.
func (s *sidecar) stop() {
	s.t.Helper()
	s.signal(syscall.SIGTERM)
	require.Equal(s.t, 0, s.exit())
}

// kill kills the process, and prints its log if the test has failed.
func (s *sidecar) kill() {
	_ = s.cmd.Process.Kill() // fails if the process has ended
	<-s.ended
	if s.t.Failed() {
		for _, l := range s.logged("") {
			s.t.Log(l)
		}
	}
}

// ready returns the status and the text of the readiness check.
func (s *sidecar) ready() (int, string) {
	s.t.Helper()
	res, err := http.Get("http://" + s.admin + "/readyz")
	require.NoError(s.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(s.t, err)
	return res.StatusCode, string(text)
}
