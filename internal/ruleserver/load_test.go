package ruleserver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/ruleserver/executor"
)

func TestHint(t *testing.T) {
	load := executor.Load{Cores: 16}
	load.Running[executor.High], load.Running[executor.Low] = 2, 10
	load.Stalled[executor.High], load.Stalled[executor.Low] = 1, 2
	now := time.UnixMilli(1763677245123)
	assert.Equal(t, "at=1763677245.123, running=12, stalled=3, stalled_high=1, cores=16", hint(now, load, executor.Facts{}))
	assert.Equal(t, "at=1763677245.123, running=12, stalled=3, stalled_high=1, cores=16, cached=1, waited=0.004",
		hint(now, load, executor.Facts{Started: true, Cached: true, Wait: 4 * time.Millisecond}))
	assert.Equal(t, "at=1763677245.123, running=12, stalled=3, stalled_high=1, cores=16, cached=0, waited=0, fetch=1.9",
		hint(now, load, executor.Facts{Started: true, Fetch: 1900 * time.Millisecond}))
}

// TestORCA: the same figures as text, to those who ask for it.
func TestORCA(t *testing.T) {
	load := executor.Load{Cores: 16, Busy: 12, Running: [2]int{2, 10}, Stalled: [2]int{1, 3}}
	job := executor.Facts{Started: true, Cached: true, Wait: 4 * time.Millisecond}
	assert.Equal(t, "TEXT cpu_utilization=0.75, application_utilization=1, named_metrics.running=12, named_metrics.stalled=4, "+
		"named_metrics.stalled_high=1, named_metrics.cores=16, named_metrics.cached=1, named_metrics.waited=0.004", orca(load, job))

	s := newServer(t, nil)
	for _, body := range []string{anyJob, "{}"} {
		for format, sent := range map[string]bool{"": false, "json": false, "text": true, "TEXT": true} {
			w := do(s, t.Context(), "POST", "/v1/jobs", body, orcaFormatHeader+": "+format)
			assert.Equal(t, sent, w.Header().Get(orcaHeader) != "", "%s %s", body, format)
		}
	}
}
