//go:build clients

package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
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

// The programs of docs/submitters.md submit a job again when nothing was done for it,
// and never otherwise.
func TestClientsSnippets(t *testing.T) {
	up := &fickle{seen: map[string]int{}}
	web := httptest.NewServer(up)
	t.Cleanup(web.Close)
	s := start(t, "--upstream", web.Listener.Addr().String(), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	for _, c := range []struct {
		name    string
		command []string
	}{
		{"Python", []string{cmp.Or(os.Getenv("PYTHON"), "python3"), "submit.py"}},
		{"Java", []string{"java", "Submit.java"}},
		{"Node", []string{cmp.Or(os.Getenv("NODE"), "node"), "submit.mjs"}},
		{"Go", []string{"go", "run", "submit.go"}},
		{"curl", []string{"./submit.sh"}},
	} {
		for _, job := range []struct {
			what string
			sent int
			ok   bool
		}{
			{what: "answered", sent: 1, ok: true},
			{what: "429 Retry-After", sent: 2, ok: true},
			{what: "503 Retry-After", sent: 2, ok: true},
			{what: "503 Job-Started", sent: 2, ok: true},
			{what: "503", sent: 1},
			{what: "500 Retry-After", sent: 1},
			{what: "cut", sent: 1},
		} {
			t.Run(c.name+" "+job.what, func(t *testing.T) {
				t.Parallel()
				body := fmt.Sprintf(`{"project_id": %q, "what": %q}`, c.name, job.what)
				cmd := exec.Command(c.command[0], c.command[1:]...)
				cmd.Dir, cmd.Stdin, cmd.Stderr = "../../docs/examples", strings.NewReader(body), t.Output()
				cmd.Env = append(os.Environ(), "PILOTFISH_URL=http://"+s.jobs)
				out, err := cmd.Output()
				if job.ok {
					require.NoError(t, err)
					assert.Equal(t, "the result\n", string(out))
				} else {
					assert.Error(t, err, "%s", out)
				}
				assert.Equal(t, job.sent, up.count(body))
			})
		}
	}
}

// fickle is an upstream that does with a job's first attempt what the job says, and
// answers the second.
type fickle struct {
	mu   sync.Mutex
	seen map[string]int // jobs by their bodies
}

func (f *fickle) count(body string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[body]
}

func (f *fickle) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.NotFound(w, r) // no reports
		return
	}
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	f.seen[string(body)]++
	first := f.seen[string(body)] == 1
	f.mu.Unlock()
	var job struct{ What string }
	_ = json.Unmarshal(body, &job) // it is the test's own
	status, header, _ := strings.Cut(job.What, " ")
	code, err := strconv.Atoi(status)
	switch {
	case first && job.What == "cut":
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "the res")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case first && err == nil:
		if header != "" {
			w.Header().Set(header, map[string]string{"Retry-After": "1", "Job-Started": "no"}[header])
		}
		w.WriteHeader(code)
	default:
		_, _ = io.WriteString(w, "the result\n")
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
