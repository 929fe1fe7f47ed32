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
)

func TestClientsTutorialOfPlainServers(t *testing.T) {
	outputs := tutorial(t, "plain-servers")
	for step, text := range map[string]string{"four requests": outputs[3], "after the server was killed": outputs[5]} {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		require.Len(t, lines, 4, step)
		assert.Equal(t, []string{lines[0]}, slices.Compact(lines), "%s: a tenant stays at one server", step)
	}
	assert.NotEqual(t, outputs[3], outputs[5], "the dead server responds no more")
}

// The tutorial is run with llama.cpp, and with a stand-in for vLLM, which has the same API and metrics.
func TestClientsTutorialOfVLLM(t *testing.T) {
	for server, programs := range map[string]string{"llama.cpp": "clients/llama", "vLLM": "clients"} {
		t.Run(server, func(t *testing.T) {
			folder, err := filepath.Abs(programs)
			require.NoError(t, err)
			printed := tutorial(t, "vllm", folder, filepath.Dir(os.Getenv("PYTHON")))[3]
			at := regexp.MustCompile(`(?i)pilotfish-upstream: (\S+)`).FindAllStringSubmatch(printed, -1)
			require.Len(t, at, 2)
			assert.Equal(t, at[0], at[1], "both chats have the same system prompt")
			cached := regexp.MustCompile(`"cached_tokens": *(\d+)`).FindAllStringSubmatch(printed, -1)
			require.Len(t, cached, 2, printed)
			assert.Equal(t, "0", cached[0][1])
			assert.Greater(t, len(cached[1][1]), 3, "thousands of tokens were in the server's cache: %s", printed)
		})
	}
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
			{what: "429 Retry-After=1", sent: 2, ok: true},
			{what: "503 Retry-After=1", sent: 2, ok: true},
			{what: "503 Job-Started=no", sent: 2, ok: true},
			{what: "503 Job-Started=withdrawn", sent: 2, ok: true},
			{what: "503 Job-Started=yes", sent: 1},
			{what: "503", sent: 1},
			{what: "502", sent: 1},
			{what: "500 Retry-After=1", sent: 1},
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
		if name, value, ok := strings.Cut(header, "="); ok {
			w.Header().Set(name, value)
		}
		w.WriteHeader(code)
	default:
		_, _ = io.WriteString(w, "the result\n")
	}
}
