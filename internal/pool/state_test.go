package pool

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExplainClaimsNothing(t *testing.T) {
	f := newFixture(t, "expected", 3)
	us := upstreams(3)
	f.Report(start, us[1].Address, report(start, 1, 0, 42))
	ranking, err := f.Explain(start, Request{Project: 42})
	require.NoError(t, err)
	assert.Equal(t, us[1].Address, ranking[0].Address)
	assert.True(t, ranking[0].Picked)
	assert.Equal(t, "cached", ranking[0].Cache)
	assert.Greater(t, ranking[1].Cost.Fetch, ranking[0].Cost.Fetch)
	assert.Zero(t, f.InFlight())
}
