package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/ports"
)

// A sidecar that ends leaves what it has learned to the next.
func TestARestartKeepsWhatWasLearned(t *testing.T) {
	cfg, _ := fileConfig(t, "127.0.0.1:1")
	cfg.State.Path = filepath.Join(t.TempDir(), "state.json")
	first, logs := logged(t, &cfg)
	assert.Zero(t, logs.FilterMessageSnippet("state file").Len(), "that there is none is no fault")
	learned := first.balancer.Learned()
	learned.Fetches.Projects[7] = [2]float64{3, 5}
	learned.Upstreams["127.0.0.1:1"] = pool.LearnedUpstream{FetchFactor: 2}
	require.NoError(t, first.balancer.Restore(learned))
	first.balancer.Set([]pool.Upstream{{Address: "127.0.0.1:1"}})

	jobs, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	admin, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(t, first.Run(ended, ports.Ports{Jobs: jobs, Admin: admin}, nil))

	next, logs := logged(t, &cfg)
	assert.Equal(t, 1, logs.FilterMessage("the sidecar begins with what was learned before").Len())
	next.balancer.Set([]pool.Upstream{{Address: "127.0.0.1:1"}})
	got := next.balancer.Learned()
	assert.Equal(t, [2]float64{3, 5}, got.Fetches.Projects[7])
	assert.Equal(t, 2.0, got.Upstreams["127.0.0.1:1"].FetchFactor)
	info, err := os.Stat(cfg.State.Path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}
