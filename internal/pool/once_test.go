package pool

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestKeysThatComeOnce: a project that was seen comes again; of others, that is as likely as
// the jobs so far say.
func TestKeysThatComeOnce(t *testing.T) {
	f, w := newFixture(t, "random", 1), &witness{}
	f.cfg.Policy = w
	claim := func(project uint64) float64 {
		a, err := f.Claim(start, Request{Project: project}, nil)
		require.NoError(t, err)
		a.Answered(start, true, nil)
		a.Done(start, Answered)
		return w.job.Once
	}
	assert.InDelta(t, 0.5, claim(1), 0.1, "nothing is known")
	assert.Zero(t, claim(1), "it came again")
	for project := range uint64(300) {
		claim(project + 10)
	}
	assert.Greater(t, claim(2), 0.9)
	assert.Zero(t, claim(2))
	for range 300 {
		claim(2)
	}
	assert.Less(t, claim(3), 0.1)
}
