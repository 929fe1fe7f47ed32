package scenario

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Where jobs tell the size of their data, fetches take about as long as was expected;
// without, the first of each project is expected to take a middling time.
func TestFetches(t *testing.T) {
	s, err := Load("../../../testdata/scenarios/tuning/fetch-times.yaml")
	require.NoError(t, err)
	runs, err := s.Choose(Choice{Only: []string{"listings", "jobs"}, Scale: 0.05})
	require.NoError(t, err)
	long := map[string]string{}
	for _, r := range runs {
		table, err := s.fetches(t.Context(), r)
		require.NoError(t, err)
		assert.Contains(t, table.Title, r.Name+", seed 161")
		require.Len(t, table.Rows, len(fetchBounds)+1)
		assert.Equal(t, "up to 0.1 s", table.Rows[0][0])
		assert.Equal(t, "more than 10 s", table.Rows[len(fetchBounds)][0])
		long[r.Name] = table.Rows[len(fetchBounds)][5] // expected over taken, the median
	}
	assert.Less(t, long["listings"], "0.30")
	assert.Greater(t, long["jobs"], "0.50")
}
