//go:build clients

package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	reference "example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/internal/ruleserver/example"
)

// Programs that are commonly used to post jobs do so through a real sidecar, with real rule
// processing servers. Each is a script in clients/ that fails if a result differs from that
// without pilotfish, or from the documented one.
//
// PYTHON is the Python interpreter that has the libraries, NODE the node program.
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

func TestClientsTutorialOfPlainServers(t *testing.T) {
	outputs := tutorial(t, "plain-servers")
	for step, text := range map[string]string{"four requests": outputs[3], "after the server was killed": outputs[5]} {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		require.Len(t, lines, 4, step)
		assert.Equal(t, []string{lines[0]}, slices.Compact(lines), "%s: a tenant stays at one server", step)
	}
	assert.NotEqual(t, outputs[3], outputs[5], "the dead server responds no more")
}

func TestClientsTutorialOfVLLM(t *testing.T) {
	fake, err := filepath.Abs("clients")
	require.NoError(t, err)
	at := regexp.MustCompile(`(?i)pilotfish-upstream: (\S+)`).FindAllStringSubmatch(tutorial(t, "vllm", fake)[3], -1)
	require.Len(t, at, 2)
	assert.Equal(t, at[0], at[1], "both chats have the same system prompt")
}

// snippet is a program of docs/submitters.md.
type snippet struct {
	language string
	command  []string
}

func snippets() []snippet {
	return []snippet{
		{"Python", []string{cmp.Or(os.Getenv("PYTHON"), "python3"), "submit.py"}},
		{"Java", []string{"java", "Submit.java"}},
		{"Node", []string{cmp.Or(os.Getenv("NODE"), "node"), "submit.mjs"}},
		{"Go", []string{"go", "run", "submit.go"}},
		{"curl", []string{"./submit.sh"}},
	}
}

// submit runs the program to its end, and returns its standard output.
func (p snippet) submit(to, job string, problems io.Writer) (string, error) {
	cmd := exec.Command(p.command[0], p.command[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stderr = "../../docs/examples", strings.NewReader(job), problems
	cmd.Env = append(os.Environ(), "PILOTFISH_URL=http://"+to)
	out, err := cmd.Output()
	return string(out), err
}

// The programs of docs/submitters.md submit a job again only if nothing was done for it.
func TestClientsSnippets(t *testing.T) {
	up := &fickle{seen: map[string]int{}}
	web := httptest.NewServer(up)
	t.Cleanup(web.Close)
	s := start(t, "--upstream", web.Listener.Addr().String(), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	for _, p := range snippets() {
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
			{what: "502", sent: 1},
			{what: "500 Retry-After", sent: 1},
			{what: "cut", sent: 1},
		} {
			t.Run(p.language+" "+job.what, func(t *testing.T) {
				t.Parallel()
				body := fmt.Sprintf(`{"project_id": %q, "what": %q}`, p.language, job.what)
				out, err := p.submit(s.jobs, body, t.Output())
				if job.ok {
					require.NoError(t, err)
					assert.Equal(t, "the result\n", out)
				} else {
					assert.Error(t, err, "%s", out)
				}
				assert.Equal(t, job.sent, up.count(body))
			})
		}
	}
}

// They submit it again if the connection is refused: here the sidecar starts later.
func TestClientsSnippetsWithoutASidecar(t *testing.T) {
	for _, p := range snippets() {
		t.Run(p.language, func(t *testing.T) {
			t.Parallel()
			up := &fickle{seen: map[string]int{}}
			web := httptest.NewServer(up)
			t.Cleanup(web.Close)
			port, address := taken(t)
			const body = `{"project_id": 1, "what": "answered"}`
			problems := &watcher{Writer: t.Output(), words: "nothing was done; again in 1 s", yes: make(chan struct{})}
			type ending struct {
				out string
				err error
			}
			ended := make(chan ending, 1)
			go func() {
				out, err := p.submit(address, body, problems)
				ended <- ending{out, err}
			}()
			select {
			case <-problems.yes:
			case end := <-ended:
				require.FailNow(t, "it gave up", "%v", end)
			}
			require.NoError(t, syscall.Listen(int(port.Fd()), 16))
			activate(t, []*os.File{port, hold(t)}, "jobs:admin", "--upstream", web.Listener.Addr().String())
			end := <-ended
			require.NoError(t, end.err)
			assert.Equal(t, "the result\n", end.out)
			assert.Equal(t, 1, up.count(body))
		})
	}
}

// They do not submit it again if the connection is reset after a part of the job was sent.
func TestClientsSnippetsAfterAReset(t *testing.T) {
	for _, p := range snippets() {
		t.Run(p.language, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			var conns atomic.Int64
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					conns.Add(1)
					_, _ = io.ReadFull(c, make([]byte, 4)) // the job may have started
					_ = c.(*net.TCPConn).SetLinger(0)
					_ = c.Close()
				}
			}()
			out, err := p.submit(l.Addr().String(), `{"project_id": 1}`, t.Output())
			assert.NoError(t, l.Close())
			assert.Error(t, err, "%s", out)
			assert.EqualValues(t, 1, conns.Load())
		})
	}
}

// taken is a port that no other process gets, and that refuses connections until someone
// listens.
func taken(t *testing.T) (port *os.File, address string) {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	port = os.NewFile(uintptr(socket), "port")
	t.Cleanup(func() { _ = port.Close() })
	require.NoError(t, syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	at, err := syscall.Getsockname(socket)
	require.NoError(t, err)
	return port, fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)
}

// watcher is a writer that signals when a text has been written.
type watcher struct {
	io.Writer
	words string
	yes   chan struct{} // closed when the text was written
	all   []byte
}

func (h *watcher) Write(text []byte) (int, error) {
	before := bytes.Contains(h.all, []byte(h.words))
	h.all = append(h.all, text...)
	if !before && bytes.Contains(h.all, []byte(h.words)) {
		close(h.yes)
	}
	return h.Writer.Write(text)
}

// fickle is an upstream that treats a job's first attempt as the job's text specifies, and
// responds to the second.
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
	_ = json.Unmarshal(body, &job) // the job is the test's own
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

// surroundings starts everything that a script needs, and returns the addresses as environment
// variables.
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

// table writes the response to a job without a sidecar to a file.
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
