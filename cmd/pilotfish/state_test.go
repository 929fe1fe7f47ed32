package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
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
	require.NoError(t, first.Run(ended, ports{jobs: jobs, admin: admin}))

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

func TestStateFilesThatAreIgnored(t *testing.T) {
	now := time.Now()
	cfg, _ := fileConfig(t, "127.0.0.1:1")
	cfg.State.Path = filepath.Join(t.TempDir(), "state.json")
	s, _ := logged(t, &cfg)
	require.NoError(t, writeState(cfg.State.Path, now, s.balancer.Learned()))
	whole, err := os.ReadFile(cfg.State.Path)
	require.NoError(t, err)
	for fault, spoil := range map[string]func(string) string{
		"more than state.max_age":          func(s string) string { return strings.Replace(s, `"saved_at":"20`, `"saved_at":"19`, 1) },
		"written in the future":            func(s string) string { return strings.Replace(s, `"saved_at":"20`, `"saved_at":"21`, 1) },
		"it is of version 2, not 1":        func(s string) string { return strings.Replace(s, `"version":1`, `"version":2`, 1) },
		"its checksum is wrong":            func(s string) string { return strings.Replace(s, `"startup":0.1`, `"startup":0.2`, 1) },
		"it is damaged: unexpected end":    func(s string) string { return s[:len(s)/2] },
		"it is damaged: invalid character": func(string) string { return "\x00\x01" },
		"is longer than":                   func(string) string { return strings.Repeat(" ", maxState+1) },
		"not one that can have been learned": func(string) string {
			require.NoError(t, writeState(cfg.State.Path, now, pool.Learned{}))
			text, err := os.ReadFile(cfg.State.Path)
			require.NoError(t, err)
			return string(text)
		},
	} {
		require.NoError(t, os.WriteFile(cfg.State.Path, []byte(spoil(string(whole))), 0o600))
		_, logs := logged(t, &cfg)
		told := logs.FilterMessageSnippet("the state file is ignored").All()
		if assert.Len(t, told, 1, fault) {
			assert.Contains(t, told[0].ContextMap()["error"], fault)
		}
	}
}
