package deploy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a running pilotfish shows after some jobs is what promtool wants to see.
func TestPromtoolAcceptsTheMetrics(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusNotFound) // a report that fails
		}
	}))
	defer upstream.Close()
	jobs, admin := serve(t, upstream.Listener.Addr().String())
	for _, body := range []string{`{"project_id": 1, "priority": "high"}`, `{"project_id": 1}`, `{`} {
		res, err := http.Post("http://"+jobs+"/v1/jobs", "application/json", strings.NewReader(body))
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
	}
	res, err := http.Get("http://" + admin + "/metrics")
	require.NoError(t, err)
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Contains(t, string(page), "pilotfish_jobs_total")

	out, err := checkMetrics(page)
	require.NoError(t, err, out)
	assert.Empty(t, out)
	out, err = checkMetrics(bytes.ReplaceAll(page, []byte("pilotfish_jobs_total"), []byte("pilotfish_jobs")))
	require.Error(t, err)
	assert.Contains(t, out, "pilotfish_jobs")
}

// checkMetrics is what promtool says of a page of metrics.
func checkMetrics(page []byte) (string, error) {
	check := exec.Command("promtool", "check", "metrics")
	check.Stdin = bytes.NewReader(page)
	out, err := check.CombinedOutput()
	return string(out), err
}

// serve runs pilotfish and returns host:port of its two ports.
func serve(t *testing.T, upstream string) (jobs, admin string) {
	t.Helper()
	sidecar := exec.Command(pilotfish, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--upstream", upstream)
	log, err := sidecar.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, sidecar.Start())
	lines := bufio.NewScanner(log)
	t.Cleanup(func() {
		_ = sidecar.Process.Signal(syscall.SIGTERM) // fails if it has ended
		for lines.Scan() {
		}
		assert.NoError(t, sidecar.Wait())
	})
	for lines.Scan() {
		var line struct{ Msg, Jobs, Admin string }
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		if line.Msg == "serving" {
			return line.Jobs, line.Admin
		}
	}
	require.FailNow(t, "pilotfish ended before it served")
	return "", ""
}
