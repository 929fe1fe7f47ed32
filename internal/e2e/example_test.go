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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

// TestClientsExampleUpstream runs the example of docs/upstreams.md behind a sidecar:
// its reports are read, and it gets no jobs while it drains.
func TestClientsExampleUpstream(t *testing.T) {
	agent := newStubAgent(t)
	ups := []*exampleUpstream{startExample(t, agent.address), startExample(t, agent.address)}
	s, list := serveExamples(t, "", ups[0].address, ups[1].address)
	discover := func(draining *exampleUpstream) {
		list(fmt.Sprintf("%s draining=%t", ups[0].address, ups[0] == draining), fmt.Sprintf("%s draining=%t", ups[1].address, ups[1] == draining))
	}

	s.until("both report their load and their cores", func(by map[string]pool.State) bool {
		return len(by) == 2 && by[ups[0].address].ReportFresh && by[ups[1].address].ReportFresh && by[ups[0].address].Cores > 0
	})
	first := s.example(`{"project_id": 1}`)
	assert.Equal(t, "none", first.Get("Pilotfish-Cache"))
	assert.Contains(t, first.Get("X-Load"), "cached=0")
	holder, other := ups[0], ups[1]
	if first.Get("Pilotfish-Upstream") == other.address {
		holder, other = other, holder
	}
	s.until("the listing is read", func(by map[string]pool.State) bool { return by[holder.address].Cached == 1 })
	again := s.example(`{"project_id": 1}`)
	assert.Equal(t, []string{holder.address, "cached"}, []string{again.Get("Pilotfish-Upstream"), again.Get("Pilotfish-Cache")})
	assert.Contains(t, again.Get("X-Load"), "cached=1")

	probe := func(u *exampleUpstream) string {
		return call(t, http.MethodGet, "http://"+u.address+"/v1/load?project=1", "").header.Get("X-Load")
	}
	require.EventuallyWithT(t, func(t *assert.CollectT) { // the job counts as running until just after its response
		assert.Equal(t, []string{"running=0, stalled=0, busy=0, cached=1", "running=0, stalled=0, busy=0, cached=0"}, []string{probe(holder), probe(other)})
	}, patience, tick)

	// A notice: new jobs are sent elsewhere.
	discover(holder)
	s.until("the notice is read", func(by map[string]pool.State) bool { return by[holder.address].Why == "draining" })
	moved := s.example(`{"project_id": 1}`)
	assert.Equal(t, []string{other.address, "none"}, []string{moved.Get("Pilotfish-Upstream"), moved.Get("Pilotfish-Cache")})
	assert.Contains(t, moved.Get("X-Load"), "cached=0")
	discover(nil)
	s.until("the notice is over", func(by map[string]pool.State) bool { return by[holder.address].Eligible })

	// Pilotfish learns of this shutdown only when the server refuses a job.
	holder.keepBusy(t, 1)
	s.until("the running job is read", func(by map[string]pool.State) bool { return by[holder.address].Running == 1 })
	project := s.preferred(holder.address)
	require.NoError(t, holder.cmd.Process.Signal(syscall.SIGTERM))
	agent.until(t, holder.address+" draining=true")
	var took http.Header
	require.Eventually(t, func() bool { // the signal arrives just after Consul's update
		took = s.example(fmt.Sprintf(`{"project_id": %d}`, project))
		return took.Get("Pilotfish-Attempts") == "2"
	}, patience, tick, "it refuses no job")
	assert.Equal(t, other.address, took.Get("Pilotfish-Upstream"))

	require.NoError(t, other.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, other.cmd.Wait(), "it ends well when no job runs")
	agent.until(t, "deregister ruleserver-"+portOf(t, other.address))
	s.Stop()
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
			call(t, http.MethodPost, "http://"+u.address+"/v1/jobs", fmt.Sprintf(`{"project_id": 1, "seconds": %d}`, seconds), "Job-Expected", expected)
			mu.Lock()
			defer mu.Unlock()
			ended = append(ended, expected)
		})
		u.until(t, []string{fmt.Sprintf("ruleserver_jobs_running %d", others+1), "ruleserver_stalled_joblets 1", "ruleserver_stalled_joblets 2"}[i])
	}
	wg.Wait()
	assert.Equal(t, []string{"1", "0.5", "3"}, ended)
}

// TestClientsExampleUpstreamWithdraws: a job that waits at a busy server is withdrawn when an idle one joins, and runs there.
func TestClientsExampleUpstreamWithdraws(t *testing.T) {
	agent := newStubAgent(t)
	busy, idle := startExample(t, agent.address), startExample(t, agent.address)
	s, discover := serveExamples(t, "job: {withdraw_path: '/v1/jobs/{id}'}\nretry: {first_byte: 1m}\n", busy.address)
	s.until("the rate of the server is learned", func(by map[string]pool.State) bool {
		s.example(`{"project_id": 1, "seconds": 0.3}`)
		return by[busy.address].Rate > 0
	})
	for i := range runtime.NumCPU() {
		busy.keepBusy(t, i+1)
	}
	s.until("the running jobs are read", func(by map[string]pool.State) bool { return by[busy.address].Running == float64(runtime.NumCPU()) })
	served := make(chan http.Header, 1)
	go func() {
		defer close(served)
		served <- s.example(`{"project_id": 1}`)
	}()
	busy.until(t, "ruleserver_stalled_joblets 1")
	discover(busy.address, idle.address)
	header := <-served
	assert.Equal(t, []string{idle.address, "2"}, []string{header.Get("Pilotfish-Upstream"), header.Get("Pilotfish-Attempts")})
	s.eventually(1, "pilotfish_withdrawals_total", "outcome", "accepted")
	busy.until(t, "ruleserver_stalled_joblets 0")
	busy.until(t, fmt.Sprintf("ruleserver_jobs_running %d", runtime.NumCPU()))
	idle.until(t, "ruleserver_jobs_completed_total 1")

	for id, status := range map[string]int{"unknown": http.StatusNotFound, "busy-1": http.StatusConflict} {
		assert.Equal(t, status, call(t, http.MethodDelete, "http://"+busy.address+"/v1/jobs/"+id, "").status, id)
	}
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
	r.Header.Set("Job-Id", fmt.Sprint("busy-", running))
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
		response, err := http.Get("http://" + u.address + "/metrics") // refused while it starts
		if err != nil {
			return false
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return strings.Contains("\n"+string(text), "\n"+line+"\n")
	}, patience, 2*tick, line)
}

// serveExamples starts a sidecar whose file of upstreams has these lines. discover replaces the lines.
func serveExamples(t *testing.T, more string, upstreams ...string) (s *sidecar, discover func(upstreams ...string)) {
	t.Helper()
	list := filepath.Join(t.TempDir(), "upstreams.txt")
	discover = func(upstreams ...string) {
		require.NoError(t, os.WriteFile(list, []byte(strings.Join(upstreams, "\n")+"\n"), 0o600))
	}
	discover(upstreams...)
	text := fmt.Sprintf("discovery: {file: %s}\nreports: {interval: 1s}\nstream: {explain_headers: true}\n%s", list, more)
	return start(t, options(t, text)...), discover
}

// preferred returns a project that is cached nowhere and whose job would be sent to this
// upstream.
func (s *sidecar) preferred(address string) int {
	s.t.Helper()
	for project := 1000; project < 1100; project++ {
		var pick struct{ Upstream string }
		if s.get(fmt.Sprintf("/api/pick?project=%d", project), &pick); pick.Upstream == address {
			return project
		}
	}
	require.FailNow(s.t, "no project prefers this upstream")
	return 0
}

// example posts a job for the example's servers, and returns the header of the response.
func (s *sidecar) example(job string) http.Header {
	s.t.Helper()
	r := s.post(job)
	assert.Equal(s.t, http.StatusOK, r.status, r.text)
	assert.Equal(s.t, "a result made of the project's data\n", r.text)
	return r.header
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
