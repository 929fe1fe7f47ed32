//go:build cluster

package e2e

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestClusterPrewarms: a server is pre-empted. It gets nothing new, its busiest
// projects are fetched by the others, and no job is lost.
func TestClusterPrewarms(t *testing.T) {
	t.Parallel()
	consul := newAgent(t)
	consul.start(t)
	c := newCluster(t, newFeeds(t, 0), "--consul="+consul.http, "--service=rules", "--cost=fetch=100ms,output=20ms", "--preemptible", "--notice=20s")
	addresses := freeAddresses(t, 3)
	for _, a := range addresses {
		c.serve(a)
	}
	c.sideline("discovery: {consul: {address: " + consul.http + ", service: rules}}\n")
	c.eligible(3, 3)
	l := newLedger()
	s := newSubmitters(t, c.sidecar.jobs, l, 2)
	stop := s.pace(20 * time.Millisecond)
	defer stop()
	begun := time.Now()
	for _, a := range addresses {
		require.Eventually(t, func() bool { return l.served(a, begun) }, 2*patience, 10*tick, "%s is not used", a)
	}
	s.more(t, 300)

	slices.SortFunc(addresses, func(x, y string) int { return l.answeredBy(y) - l.answeredBy(x) })
	leaving := addresses[0] // with the most to leave behind
	response, err := http.Post("http://"+leaving+"/v1/preempt", "", nil)
	require.NoError(t, err)
	_ = response.Body.Close()
	require.Equal(t, http.StatusAccepted, response.StatusCode)
	c.eligible(2, 3)
	require.Eventually(t, func() bool {
		return prefetched(t, c, addresses[1])+prefetched(t, c, addresses[2]) >= 3
	}, patience, 10*tick, "nothing is fetched elsewhere")
	require.NoError(t, c.servers[leaving].cmd.Wait(), "it ends with its notice: %s", tail(c.serverLog(leaving)))
	c.eligible(2, 2)
	s.more(t, 50)

	stop()
	c.balance(l)
	c.beside.drain()
	for _, a := range addresses[1:] {
		c.servers[a].drain()
	}
	c.read(l)
	assert.Empty(t, l.audit())
	assert.Equal(t, len(l.answers), l.count("right"), "%v", l)
	assert.Zero(t, prefetched(t, c, leaving))
}

// prefetched counts what a server fetched ahead.
func prefetched(t *testing.T, c *cluster, address string) int {
	t.Helper()
	text, err := os.ReadFile(c.serverLog(address))
	require.NoError(t, err)
	return strings.Count(string(text), `"msg":"prefetch"`)
}
