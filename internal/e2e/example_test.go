//go:build clients

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

// TestClientsExampleUpstream runs the example of docs/upstreams.md behind a sidecar:
// its reports are read, and it gets no jobs while it drains.
func TestClientsExampleUpstream(t *testing.T) {
	agent := newStubAgent(t)
	ups := []*exampleUpstream{startExample(t, agent.address), startExample(t, agent.address)}
	list := filepath.Join(t.TempDir(), "upstreams.txt")
	discover := func(draining *exampleUpstream) {
		var text []byte
		for _, u := range ups {
			text = fmt.Appendf(text, "%s draining=%t\n", u.address, u == draining)
		}
		require.NoError(t, os.WriteFile(list, text, 0o600))
	}
	discover(nil)
	config := filepath.Join(t.TempDir(), "pilotfish.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil,
		"discovery: {file: %s}\nreports: {interval: 1s}\nstream: {explain_headers: true}\n", list), 0o600))
	s := &exampleSidecar{start(t, "--config", config, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")}

	s.until(t, "both report their load and their cores", func(by map[string]pool.State) bool {
		return len(by) == 2 && by[ups[0].address].ReportFresh && by[ups[1].address].ReportFresh && by[ups[0].address].Cores > 0
	})
	first := s.post(t, `{"project_id": 1}`)
	assert.Equal(t, "none", first.Get("Pilotfish-Cache"))
	assert.Contains(t, first.Get("X-Load"), "cached=0")
	holder, other := ups[0], ups[1]
	if first.Get("Pilotfish-Upstream") == other.address {
		holder, other = other, holder
	}
	s.until(t, "the listing is read", func(by map[string]pool.State) bool { return by[holder.address].Cached == 1 })
	again := s.post(t, `{"project_id": 1}`)
	assert.Equal(t, []string{holder.address, "cached"}, []string{again.Get("Pilotfish-Upstream"), again.Get("Pilotfish-Cache")})
	assert.Contains(t, again.Get("X-Load"), "cached=1")

	probe := func(u *exampleUpstream) string {
		res, err := http.Get("http://" + u.address + "/v1/load?project=1")
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		return res.Header.Get("X-Load")
	}
	assert.Equal(t, []string{"running=0, stalled=0, busy=0, cached=1", "running=0, stalled=0, busy=0, cached=0"}, []string{probe(holder), probe(other)})

	// A notice: new jobs are sent elsewhere.
	discover(holder)
	s.until(t, "the notice is read", func(by map[string]pool.State) bool { return by[holder.address].Why == "draining" })
	moved := s.post(t, `{"project_id": 1}`)
	assert.Equal(t, []string{other.address, "none"}, []string{moved.Get("Pilotfish-Upstream"), moved.Get("Pilotfish-Cache")})
	assert.Contains(t, moved.Get("X-Load"), "cached=0")
	discover(nil)
	s.until(t, "the notice is over", func(by map[string]pool.State) bool { return by[holder.address].Eligible })

	// Pilotfish learns of this shutdown only when the server refuses a job.
	holder.keepBusy(t, 1)
	s.until(t, "the running job is read", func(by map[string]pool.State) bool { return by[holder.address].Running == 1 })
	project := s.preferred(t, holder.address)
	require.NoError(t, holder.cmd.Process.Signal(syscall.SIGTERM))
	agent.until(t, holder.address+" draining=true")
	var took http.Header
	require.Eventually(t, func() bool { // the signal arrives just after Consul's update
		took = s.post(t, fmt.Sprintf(`{"project_id": %d}`, project))
		return took.Get("Pilotfish-Attempts") == "2"
	}, patience, tick, "it refuses no job")
	assert.Equal(t, other.address, took.Get("Pilotfish-Upstream"))

	require.NoError(t, other.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, other.cmd.Wait(), "it ends well when no job runs")
	agent.until(t, "deregister ruleserver-"+portOf(t, other.address))
	s.stop()
}

// TestClientsExampleUpstreamOrders: of two waiting jobs, the one with the shorter expected
// duration runs first, although it arrived last.
func TestClientsExampleUpstreamOrders(t *testing.T) {
	u := startExample(t, newStubAgent(t).address)
	u.until(t, fmt.Sprintf("ruleserver_cores %d", runtime.NumCPU()))
	others := runtime.NumCPU() - 1 // one core remains free
	for i := range others {
		u.keepBusy(t, i+1)
	}
	var mu sync.Mutex
	var ended []string
	var wg sync.WaitGroup
	for i, expected := range []string{"1", "3", "0.5"} {
		seconds := []int{10, 1, 1}[i] // the others must have arrived before the first has ended
		wg.Go(func() {
			r, err := http.NewRequest(http.MethodPost, "http://"+u.address+"/v1/jobs", strings.NewReader(fmt.Sprintf(`{"project_id": 1, "seconds": %d}`, seconds)))
			assert.NoError(t, err)
			r.Header.Set("Job-Expected", expected)
			response, err := http.DefaultClient.Do(r)
			if assert.NoError(t, err) {
				_ = response.Body.Close()
			}
			mu.Lock()
			defer mu.Unlock()
			ended = append(ended, expected)
		})
		u.until(t, []string{fmt.Sprintf("ruleserver_jobs_running %d", others+1), "ruleserver_stalled_joblets 1", "ruleserver_stalled_joblets 2"}[i])
	}
	wg.Wait()
	assert.Equal(t, []string{"1", "0.5", "3"}, ended)
}

// exampleUpstream is a process of docs/examples/upstream.py, which consul.sh runs.
type exampleUpstream struct {
	cmd     *exec.Cmd
	address string
}

func startExample(t *testing.T, agent string) *exampleUpstream {
	t.Helper()
	u := &exampleUpstream{address: freeAddresses(t, 1)[0]}
	port := portOf(t, u.address)
	u.cmd = exec.Command("./consul.sh", port, cmp.Or(os.Getenv("PYTHON"), "python3"), "upstream.py", port)
	u.cmd.Dir, u.cmd.Env = "../../docs/examples", append(os.Environ(), "CONSUL_HTTP_ADDR="+agent)
	u.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	u.cmd.Stdout, u.cmd.Stderr = t.Output(), t.Output()
	require.NoError(t, u.cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-u.cmd.Process.Pid, syscall.SIGKILL) // fails if both have ended
		_ = u.cmd.Wait()
	})
	return u
}

// keepBusy posts a job directly to the server that lasts as long as the test. It waits until
// the server's metrics show this many running jobs.
func (u *exampleUpstream) keepBusy(t *testing.T, running int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+u.address+"/v1/jobs", strings.NewReader(`{"project_id": 1, "seconds": 600}`))
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		if response, err := http.DefaultClient.Do(r); err == nil { // it is aborted at the end of the test
			_ = response.Body.Close()
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	u.until(t, fmt.Sprintf("ruleserver_jobs_running %d", running))
}

// until waits until the server's metrics have a line.
func (u *exampleUpstream) until(t *testing.T, line string) {
	t.Helper()
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + u.address + "/metrics")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return strings.Contains("\n"+string(text), "\n"+line+"\n")
	}, patience, 10*time.Millisecond, line)
}

// exampleSidecar is a sidecar with the requests of an operator and of a submitter.
type exampleSidecar struct{ *sidecar }

func (s *exampleSidecar) get(t *testing.T, path string, into any) {
	t.Helper()
	response, err := http.Get("http://" + s.admin + path)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.NoError(t, json.NewDecoder(response.Body).Decode(into))
}

// until waits until the upstreams are in a state.
func (s *exampleSidecar) until(t *testing.T, what string, so func(map[string]pool.State) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		var all struct {
			Upstreams []struct {
				pool.State
				Breaker any `json:"breaker"`
			}
		}
		s.get(t, "/api/upstreams", &all)
		by := map[string]pool.State{}
		for _, u := range all.Upstreams {
			by[u.Address] = u.State
		}
		return so(by)
	}, patience, 10*tick, what)
}

// preferred returns a project that is cached nowhere and whose job would be sent to this
// upstream.
func (s *exampleSidecar) preferred(t *testing.T, address string) int {
	t.Helper()
	for project := 1000; project < 1100; project++ {
		var pick struct{ Upstream string }
		if s.get(t, fmt.Sprintf("/api/pick?project=%d", project), &pick); pick.Upstream == address {
			return project
		}
	}
	require.FailNow(t, "no project prefers this upstream")
	return 0
}

func (s *exampleSidecar) post(t *testing.T, job string) http.Header {
	t.Helper()
	response, err := http.Post("http://"+s.jobs+"/v1/jobs", "application/json", strings.NewReader(job))
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s", text)
	assert.Equal(t, "a result made of the project's data\n", string(text))
	return response.Header
}

// stubAgent records the requests to a Consul agent.
type stubAgent struct {
	address  string
	mu       sync.Mutex
	received []string
}

func newStubAgent(t *testing.T) *stubAgent {
	a := &stubAgent{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var service struct {
			Address string
			Port    int
			Meta    struct{ Draining string }
		}
		_ = json.NewDecoder(r.Body).Decode(&service) // a deregistration has no body
		line := fmt.Sprintf("%s:%d draining=%s", service.Address, service.Port, service.Meta.Draining)
		if service.Port == 0 {
			line = strings.Join(strings.Split(r.URL.Path, "/")[4:], " ")
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.received = append(a.received, line)
	}))
	t.Cleanup(server.Close)
	a.address = server.Listener.Addr().String()
	return a
}

func (a *stubAgent) until(t *testing.T, line string) {
	t.Helper()
	require.Eventually(t, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return strings.Contains("\n"+strings.Join(a.received, "\n")+"\n", "\n"+line+"\n")
	}, patience, 10*tick, "Consul did not get %q", line)
}
