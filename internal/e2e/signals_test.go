package e2e

import (
	"bufio"
	"io"
	"net/http"
	"os/exec"
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
func streaming(t *testing.T, config string) (s *sidecar, answer io.Reader, goOn func()) {
	t.Helper()
	up := fakeupstream.New(t, fakeupstream.Options{})
	up.SetFault(fakeupstream.Fault{Body: firstPart + secondPart, Stall: true, StallAfter: int64(len(firstPart))})
	s = start(t, options(t, config, up.Address())...)
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
	s, answer, goOn := streaming(t, "")
	ready := func() reply { return call(t, http.MethodGet, "http://"+s.admin+"/readyz", "") }
	require.Equal(t, http.StatusOK, ready().status)

	s.Signal(syscall.SIGTERM)
	s.Await("shutting down")
	refused := ready()
	assert.Equal(t, http.StatusServiceUnavailable, refused.status)
	assert.Equal(t, "shutting down\n", refused.text)
	require.Eventually(t, func() bool { return !accepts(s.jobs) }, patience, tick, "the port stays open")
	select {
	case <-s.Ended:
		assert.Fail(t, "it did not wait for its job")
	default:
	}

	goOn()
	rest, err := io.ReadAll(answer)
	require.NoError(t, err)
	assert.Equal(t, secondPart, string(rest))
	assert.Equal(t, 0, s.Exit())
}

// timeout(1) sends two signals at once, which count as one. A later signal ends the process.
func TestASecondSIGTERMEndsNow(t *testing.T) {
	t.Parallel()
	s, answer, _ := streaming(t, "")
	s.Signal(syscall.SIGTERM)
	s.Signal(syscall.SIGTERM)
	s.Await("shutting down")
	select {
	case <-s.Ended:
		assert.Fail(t, "the second signal repeats the first")
	case <-time.After(time.Second):
	}
	s.Signal(syscall.SIGTERM)
	assert.Equal(t, 1, s.Exit())
	assert.Equal(t, "stopped by a second signal: terminated", s.Await("ended before its jobs")["error"])
	_, err := io.ReadAll(answer)
	assert.Error(t, err, "the answer was cut, and must not look whole")
}

func TestGraceTimeAbortsJobs(t *testing.T) {
	t.Parallel()
	s, _, _ := streaming(t, "shutdown: {grace: 100ms}\n")
	s.Signal(syscall.SIGTERM)
	assert.Equal(t, 1, s.Exit(), "jobs were cut")
	assert.NotContains(t, s.Await("ended before its jobs"), "jobs_cut")
}

// Ctrl-C ends the demo with exit code 0, during its jobs and after them.
func TestTheDemoEndsWithCtrlC(t *testing.T) {
	t.Parallel()
	for _, after := range []string{"1. A job", "2. The same", "Ctrl-C ends it"} {
		cmd := exec.Command(pilotfish, "demo", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
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
