package e2e

import (
	"net/http"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/program"
)

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
			free := freeAddresses(t, 2)
			cmd := serving("--listen", free[0], "--admin", free[1], "--upstream", echoing(t, "a"))
			cmd.Stderr = stderr
			s := &sidecar{Sidecar: program.Start(t, cmd, nil), t: t, jobs: free[0], admin: free[1]}
			require.NoError(t, stderr.Close())
			require.Eventually(t, func() bool { return accepts(s.admin) && accepts(s.jobs) }, patience, tick)
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200, IdleConnTimeout: idle}, Timeout: patience}
			defer client.CloseIdleConnections()
			var jobs sync.WaitGroup
			for range 200 { // 4,000 lines are more than fit into a pipe and the sidecar's buffer
				jobs.Go(func() {
					for range 20 {
						assert.Equal(t, http.StatusOK, callBy(t, client, http.MethodPost, "http://"+s.jobs+"/v1/jobs", `{"project_id": 1}`).status)
					}
				})
			}
			jobs.Wait()
			assert.Positive(t, s.metric("pilotfish_log_lines_lost_total"))
			s.Stop()
		})
	}
}
