//go:build clients

package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	reference "example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/internal/ruleserver/example"
)

// Programs that post jobs every day do so through a real sidecar, with real
// rule processing servers behind it. Each is a script in clients/ that fails
// when something is not as without pilotfish, or not as it should be.
//
// PYTHON is the interpreter that has the libraries, NODE is node.
func TestClients(t *testing.T) {
	for _, c := range []struct{ name, program, script string }{
		{"curl", "bash", "with_curl.sh"},
		{"requests", os.Getenv("PYTHON"), "with_requests.py"},
		{"aiohttp", os.Getenv("PYTHON"), "with_aiohttp.py"},
		{"httpx", os.Getenv("PYTHON"), "with_httpx.py"},
		{"fetch", os.Getenv("NODE"), "with_fetch.mjs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command(c.program, filepath.Join("clients", c.script))
			cmd.Env = append(os.Environ(), append(surroundings(t), "PYTHONDONTWRITEBYTECODE=1")...)
			out, err := cmd.CombinedOutput()
			t.Logf("\n%s", out)
			require.NoError(t, err)
		})
	}
}

// surroundings starts what a script needs, and returns where it is.
func surroundings(t *testing.T) []string {
	t.Helper()
	var s *sidecar
	ps := &probes{sidecar: func() *sidecar { return s }, byID: map[string]*probe{}}
	args := []string{"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}
	var last string
	for range 4 {
		server, err := reference.New(reference.Config{Settings: reference.Defaults(), Feeds: example.Feeds()})
		require.NoError(t, err)
		t.Cleanup(server.Close)
		web := httptest.NewServer(ps.handler(server.Handler()))
		t.Cleanup(web.Close)
		last = web.Listener.Addr().String()
		args = append(args, "--upstream", last)
	}
	s = start(t, args...)
	control := httptest.NewServer(ps.control())
	t.Cleanup(control.Close)

	job, err := filepath.Abs("../ruleserver/example/job.json")
	require.NoError(t, err)
	return []string{"SIDECAR=http://" + s.jobs, "CONTROL=" + control.URL, "JOB=" + job, "TABLE=" + table(t, last, job)}
}

// table is the answer to a job without a sidecar, in a file.
func table(t *testing.T, upstream, job string) string {
	t.Helper()
	body, err := os.Open(job)
	require.NoError(t, err)
	defer body.Close()
	r, err := http.NewRequest(http.MethodPost, "http://"+upstream+"/v1/jobs", body)
	require.NoError(t, err)
	r.Header.Set("Accept", "text/csv")
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(text), "\n"), "%s", text)
	file := filepath.Join(t.TempDir(), "table.csv")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return file
}
