//go:build cluster

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/program"
)

// TestClusterLosesNoJob: 50 jobs a second continue while servers are killed, drained and paused
// and Consul is stopped. Every job gets one response, which is correct unless its server was
// killed during it. The test takes about a minute and a half.
func TestClusterLosesNoJob(t *testing.T) {
	consul := newAgent(t)
	consul.start(t)
	c := newCluster(t, newFeeds(t, 3), "--cores=16", "--cost=fetch=100ms,output=150ms", "--grace=5m")
	addresses := freeAddresses(t, 4)
	for _, a := range addresses {
		c.serve(a)
		consul.register(t, a, false)
	}
	c.sideline("discovery: {consul: {address: " + consul.http + ", service: rules}}\n")
	c.eligible(4, 4)
	begun := time.Now()
	step := func(format string, args ...any) {
		t.Logf("%5.1fs "+format, append([]any{time.Since(begun).Seconds()}, args...)...)
	}

	l := newLedger()
	s := newSubmitters(t, c.sidecar.jobs, l, 4)
	stop := s.pace(20 * time.Millisecond)
	defer stop()
	s.more(t, 100)

	// Killed during a response: it is truncated, and the submitter detects that.
	midway := s.begin(t, bigProject)
	killed := midway.upstream
	step("kill %s", killed)
	kill := c.kill(killed)
	assert.Equal(t, "cut", midway.rest().ending())
	c.eligible(3, 3)
	step("its place is known to be empty")
	s.more(t, 100)

	// Drained during a response: it is completed, and no new job is sent there.
	midway = s.begin(t, bigProject+1)
	drained := midway.upstream
	step("drain %s", drained)
	consul.register(t, drained, true)
	c.servers[drained].Signal(syscall.SIGTERM)
	c.eligible(2, 3)
	step("it is known to drain")
	s.more(t, 50)
	assert.Equal(t, "right", midway.rest().ending())
	require.NoError(t, c.servers[drained].Wait(), program.Tail(c.serverLog(drained)))
	s.more(t, 50)

	// Paused during a response, until the sidecar learns that from Consul, and jobs have
	// continued without it: the response is completed late.
	midway = s.begin(t, bigProject+2)
	paused := midway.upstream
	step("pause %s", paused)
	c.servers[paused].Signal(syscall.SIGSTOP)
	c.eligible(1, 1)
	step("it is known to hang")
	s.more(t, 50)
	c.servers[paused].Signal(syscall.SIGCONT)
	step("it goes on")
	assert.Equal(t, "right", midway.rest().ending())
	c.eligible(2, 2)

	// Consul is stopped until several requests of the sidecar have failed. After its restart it
	// has no services. In the meantime two servers return.
	step("stop Consul")
	consul.process.Kill()
	c.serve(killed)
	c.serve(drained)
	s.more(t, 500)
	c.fails("pilotfish_discovery_errors_total", 2)
	c.eligible(2, 2) // the existing upstreams are kept
	consul.start(t)
	step("Consul is back, and empty")
	for _, a := range addresses {
		consul.register(t, a, false)
	}
	require.Eventually(t, func() bool { return consul.passing() == 4 }, 2*patience, 10*tick, "the servers are not healthy")
	step("it knows all four")
	c.eligible(4, 4)
	step("and so does the sidecar")
	back := time.Now()
	for _, a := range addresses {
		require.Eventually(t, func() bool { return l.served(a, back) }, 2*patience, 10*tick, "%s is not used", a)
	}
	s.more(t, 250)

	stop()
	c.balance(l)
	c.beside.Drain()
	for _, a := range addresses {
		c.servers[a].Drain()
	}
	c.read(l)
	fmt.Printf("== ledger: %.0f s, killed %s, drained %s, paused %s\n%v", time.Since(begun).Seconds(), killed, drained, paused, l)

	assert.Empty(t, l.audit(killed))
	assert.Equal(t, len(l.answers), l.count("right")+l.count("cut"), "no job is lost")
	assert.Empty(t, l.cutBesides(kill))
}

func TestClusterTutorialOfConsul(t *testing.T) {
	tutorial(t, "consul-nomad", filepath.Dir(tool(t, "consul", "PILOTFISH_CONSUL", "make bin/consul")))
}

// TestClusterServersRegisterThemselves: a reference server registers itself with the real Consul and gets the sidecar's
// jobs. Before it stops, Consul's check is critical, and the sidecar sends it no more jobs.
func TestClusterServersRegisterThemselves(t *testing.T) {
	consul := newAgent(t)
	consul.start(t)
	binary, err := ruleserver()
	require.NoError(t, err)
	c := newCluster(t, newFeeds(t, 3))
	addresses := freeAddresses(t, 2)
	// The first stops in 40 s: its notice begins after 10 s.
	for i, lifetime := range []string{"40s", "24h"} {
		log := filepath.Join(t.TempDir(), "server.log")
		server := program.Spawn(t, log, binary, "--listen="+addresses[i], "--feeds="+c.feeds, "--consul="+consul.http, "--consul-service=rules", "--lifetime="+lifetime)
		defer server.Signal(syscall.SIGTERM)
	}
	require.Eventually(t, func() bool { return consul.passing() == 2 }, patience, tick, "both servers are registered")
	c.sideline("discovery: {consul: {address: " + consul.http + ", service: rules}}\n")
	c.eligible(2, 2)
	require.Eventually(t, func() bool { return consul.passing() == 1 }, 2*patience, tick, "one is about to stop")
	c.eligible(1, 1)
	var checks []struct{ ServiceID, Status, Output string }
	require.NoError(t, consul.get("/v1/health/checks/rules", &checks))
	for _, check := range checks {
		if check.ServiceID == "rules-"+addresses[0] {
			assert.Equal(t, "critical", check.Status)
			assert.Contains(t, check.Output, "stops in ")
		}
	}
}

// agent is a Consul agent in dev mode: a complete Consul that keeps no state after its end.
type agent struct {
	binary, log string
	http        string // its address
	args        []string

	process *program.Daemon
}

func newAgent(t *testing.T) *agent {
	t.Helper()
	free := freeAddresses(t, 4)
	return &agent{
		binary: tool(t, "consul", "PILOTFISH_CONSUL", "make bin/consul"),
		log:    filepath.Join(t.TempDir(), "consul.log"),
		http:   free[0],
		args: []string{
			"agent", "-dev", "-bind=127.0.0.1", "-client=127.0.0.1", "-node=test", "-log-level=warn",
			"-http-port", portOf(t, free[0]), "-server-port", portOf(t, free[1]),
			"-serf-lan-port", portOf(t, free[2]), "-serf-wan-port", portOf(t, free[3]),
			"-dns-port=-1", "-grpc-port=-1", "-grpc-tls-port=-1",
			"-hcl", "disable_update_check = true",
		},
	}
}

// start runs the agent and waits until it is its own leader.
func (a *agent) start(t *testing.T) {
	t.Helper()
	a.process = program.Spawn(t, a.log, a.binary, a.args...)
	require.Eventually(t, func() bool {
		var leader string
		return a.get("/v1/status/leader", &leader) == nil && leader != ""
	}, 2*patience, 10*tick, "the agent does not lead itself")
}

// passing returns the number of servers that the agent reports as healthy, or -1 if it does not
// reply.
func (a *agent) passing() int {
	var entries []json.RawMessage
	if a.get("/v1/health/service/rules?passing", &entries) != nil {
		return -1
	}
	return len(entries)
}

// register registers a server with the agent. Its check is readiness, every second; or liveness if the server drains,
// so that sidecars see the drain.
func (a *agent) register(t *testing.T, address string, drains bool) {
	t.Helper()
	path := map[bool]string{false: "/healthz", true: "/livez"}[drains]
	request, err := http.NewRequest(http.MethodPut, "http://"+a.http+"/v1/agent/service/register", strings.NewReader(fmt.Sprintf(
		`{"ID": %q, "Name": "rules", "Address": "127.0.0.1", "Port": %s, "Meta": {"cores": "16", "draining": "%t"},
		"Check": {"HTTP": "http://%s%s", "Interval": "1s", "Timeout": "1s"}}`, address, portOf(t, address), drains, address, path)))
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
}

func (a *agent) get(path string, into any) error {
	response, err := http.Get("http://" + a.http + path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
