package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/fakeupstream"
)

const firstPart, secondPart = "first,", "second"

// streaming starts a sidecar and a job whose response has stalled after its first part. goOn
// sends the second part.
func streaming(t *testing.T, args ...string) (s *sidecar, answer io.Reader, goOn func()) {
	t.Helper()
	up := fakeupstream.New(t, fakeupstream.Options{})
	up.SetFault(fakeupstream.Fault{Body: firstPart + secondPart, Stall: true, StallAfter: int64(len(firstPart))})
	s = start(t, append(args, "--upstream", up.Address(), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")...)
	res, err := http.Post("http://"+s.jobs+"/v1/jobs", "application/json", strings.NewReader(`{"project_id": 1}`))
	require.NoError(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	first := make([]byte, len(firstPart))
	_, err = io.ReadFull(res.Body, first)
	require.NoError(t, err)
	require.Equal(t, firstPart, string(first))
	return s, res.Body, func() { up.SetFault(fakeupstream.Fault{}) }
}

func TestSIGTERMDrains(t *testing.T) {
	t.Parallel()
	s, answer, goOn := streaming(t)
	code, _ := s.ready()
	require.Equal(t, http.StatusOK, code)

	s.signal(syscall.SIGTERM)
	s.await("shutting down")
	code, text := s.ready()
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Equal(t, "shutting down\n", text)
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", s.jobs)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}, patience, tick, "the port stays open")
	select {
	case <-s.ended:
		assert.Fail(t, "it did not wait for its job")
	default:
	}

	goOn()
	rest, err := io.ReadAll(answer)
	require.NoError(t, err)
	assert.Equal(t, secondPart, string(rest))
	assert.Equal(t, 0, s.exit())
}

// timeout(1) sends two signals at once, which count as one. A later signal ends the process.
func TestASecondSIGTERMEndsNow(t *testing.T) {
	t.Parallel()
	s, answer, _ := streaming(t)
	s.signal(syscall.SIGTERM)
	s.signal(syscall.SIGTERM)
	s.await("shutting down")
	select {
	case <-s.ended:
		assert.Fail(t, "the second signal repeats the first")
	case <-time.After(time.Second):
	}
	s.signal(syscall.SIGTERM)
	assert.Equal(t, 1, s.exit())
	assert.Equal(t, "stopped by a second signal: terminated", s.await("ended before its jobs")["error"])
	_, err := io.ReadAll(answer)
	assert.Error(t, err, "the answer was cut, and must not look whole")
}

func TestGraceTimeAbortsJobs(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pilotfish.yaml")
	require.NoError(t, os.WriteFile(file, []byte("shutdown: {grace: 100ms}\n"), 0o600))
	s, _, _ := streaming(t, "--config", file)
	s.signal(syscall.SIGTERM)
	assert.Equal(t, 1, s.exit(), "jobs were cut")
	assert.NotContains(t, s.await("ended before its jobs"), "jobs_cut")
}

func TestSIGHUPReloads(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pilotfish.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write("discovery:\n  static: [" + echoing(t, "a") + "]\n")
	s := start(t, "--config", file, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	served := func() string {
		res, err := http.Post("http://"+s.jobs+"/v1/jobs", "application/json", strings.NewReader(`{"project_id": 1}`))
		require.NoError(t, err)
		defer res.Body.Close()
		return res.Header.Get("Upstream")
	}
	require.Equal(t, "a", served())

	write("discovery:\n  static: [" + echoing(t, "b") + "]\n")
	s.signal(syscall.SIGHUP)
	s.await("the configuration was reloaded")
	assert.Equal(t, 1.0, s.metric("pilotfish_config_last_reload_success"))
	require.Eventually(t, func() bool { return served() == "b" }, patience, tick)
	s.stop()
}

// Ctrl-C ends the demo with exit code 0, during its jobs and after them.
func TestTheDemoEndsWithCtrlC(t *testing.T) {
	t.Parallel()
	for _, after := range []string{"1. A job", "2. The same", "Ctrl-C ends it"} {
		cmd := exec.Command(program, "demo", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		kill := time.AfterFunc(2*patience, func() { _ = cmd.Process.Kill() })
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if strings.Contains(lines.Text(), after) {
				require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
			}
		}
		assert.NoError(t, cmd.Wait(), "Ctrl-C after %q", after)
		kill.Stop()
	}
}
