package e2e

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/fakeupstream"
)

// A prefetch through the sidecar loads the project's data, and the next job is sent there and finds it.
func TestPrefetch(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "pilotfish.yaml")
	require.NoError(t, os.WriteFile(config, []byte("job: {prefetch: {path: /v1/prefetch}}\nstream: {explain_headers: true}\nlog: {jobs: all}\n"), 0o600))
	args := []string{"--config", config, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}
	for range 3 {
		args = append(args, "--upstream", fakeupstream.New(t, fakeupstream.Options{Cost: "fetch=100ms"}).Address())
	}
	var marked []bool // each job's line: whether it has the field prefetch
	s := launchWith(t, exec.Command(program, append([]string{"serve"}, args...)...), func(line []byte) {
		marked = append(marked, bytes.Contains(line, []byte(`"prefetch":true`)))
	})
	post := func(path, body string) *http.Response {
		res, err := http.Post("http://"+s.jobs+path, "application/json", strings.NewReader(body))
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		return res
	}
	prefetch, job := post("/v1/prefetch", `{"project_id": 12345}`), post("/v1/jobs", fakeupstream.ExampleJob()) //nolint:bodyclose // post does
	assert.Equal(t, []int{http.StatusNoContent, http.StatusOK}, []int{prefetch.StatusCode, job.StatusCode})
	assert.Equal(t, prefetch.Header.Get("Pilotfish-Upstream"), job.Header.Get("Pilotfish-Upstream"))
	assert.Contains(t, prefetch.Header.Get("X-Load"), "cached=0")
	assert.Contains(t, job.Header.Get("X-Load"), "cached=1")
	assert.Contains(t, job.Header.Get("Pilotfish-Why"), " prefetched")
	for name, want := range map[string]float64{"pilotfish_prefetches_total": 1, "pilotfish_prefetches_used_total": 1, "pilotfish_jobs_total": 1, "pilotfish_picks_total": 1} {
		require.Eventually(t, func() bool { return s.metric(name) == want }, patience, tick, name)
	}
	s.stop()
	assert.Equal(t, []bool{true, false}, marked)
}
