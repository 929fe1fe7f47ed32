//go:build cluster

package e2e

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	c.servers[drained].signal(syscall.SIGTERM)
	c.eligible(2, 3)
	step("it is known to drain")
	s.more(t, 50)
	assert.Equal(t, "right", midway.rest().ending())
	require.NoError(t, c.servers[drained].cmd.Wait(), tail(c.serverLog(drained)))
	s.more(t, 50)

	// Paused during a response, until the sidecar learns that from Consul, and jobs have
	// continued without it: the response is completed late.
	midway = s.begin(t, bigProject+2)
	paused := midway.upstream
	step("pause %s", paused)
	c.servers[paused].signal(syscall.SIGSTOP)
	c.eligible(1, 1)
	step("it is known to hang")
	s.more(t, 50)
	c.servers[paused].signal(syscall.SIGCONT)
	step("it goes on")
	assert.Equal(t, "right", midway.rest().ending())
	c.eligible(2, 2)

	// Consul is stopped until several requests of the sidecar have failed. After its restart it
	// has no services. In the meantime two servers return.
	step("stop Consul")
	consul.process.kill()
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
	c.beside.drain()
	for _, a := range addresses {
		c.servers[a].drain()
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
