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
