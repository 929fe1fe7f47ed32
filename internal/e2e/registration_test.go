//go:build cluster

package e2e

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
		server := spawn(t, log, binary, "--listen="+addresses[i], "--feeds="+c.feeds, "--consul="+consul.http, "--consul-service=rules", "--lifetime="+lifetime)
		defer server.signal(syscall.SIGTERM)
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
