package ruleserver

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/ruleserver/executor"
)

func TestHint(t *testing.T) {
	load := executor.Load{Cores: 16}
	load.Running[executor.High], load.Running[executor.Low] = 2, 10
	load.Stalled[executor.High], load.Stalled[executor.Low] = 1, 2
	now := time.UnixMilli(1763677245123)
	assert.Equal(t, "at=1763677245.123, running=12, stalled=3, stalled_high=1, cores=16", hint(now, figuresOf(load), executor.Facts{}))
	assert.Equal(t, "at=1763677245.123, running=12, stalled=3, stalled_high=1, cores=16, cached=1, waited=0.004",
		hint(now, figuresOf(load), executor.Facts{Started: true, Cached: true, Wait: 4 * time.Millisecond}))
	assert.Equal(t, "at=1763677245.123, running=12, stalled=3, stalled_high=1, cores=16, cached=0, waited=0, fetch=1.9",
		hint(now, figuresOf(load), executor.Facts{Started: true, Fetch: 1900 * time.Millisecond}))
}

// TestWhatTheServerSaysIsDescribed: docs/upstreams.md has every header and every key.
func TestWhatTheServerSaysIsDescribed(t *testing.T) {
	text, err := os.ReadFile("../../docs/upstreams.md")
	require.NoError(t, err)
	job := executor.Facts{Started: true, Fetch: time.Second}
	words := []string{"id", "version", "bytes", "age_seconds", "X-Load", "X-Cost", "Job-Started", "Retry-After", "Prefer", "job-started", "cpu_utilization", "application_utilization"}
	for pair := range strings.SplitSeq(hint(time.Unix(0, 0), figures{}, job), ", ") {
		key, _, _ := strings.Cut(pair, "=")
		words = append(words, key)
	}
	for _, one := range measure(figures{cores: 1}, job).named {
		words = append(words, one.name)
	}
	families, err := newServer(t, nil).registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		words = append(words, family.GetName())
	}
	for _, word := range words {
		assert.Contains(t, string(text), "`"+word+"`")
	}
	for _, mode := range faultModes() {
		assert.Contains(t, string(text), "`"+string(mode)+"`")
	}
	for _, format := range orcaFormats()[1:] {
		assert.Contains(t, string(text), "`"+orcaFormatHeader+": "+format+"`")
		assert.Contains(t, string(text), "`"+orca{format: format}.header()+": ")
	}
}
