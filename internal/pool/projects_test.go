package pool

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// The bound forgets no job that is open.
func TestStatesOfProjectsAreBounded(t *testing.T) {
	p := newProjectStates(100)
	p.state(5, true).open, p.state(6, true).open, p.state(7, true).open = 1, 0, 2
	p.state(8, true).told = 1
	for id := range uint64(1000) {
		p.state(1000+id, true)
		assert.LessOrEqual(t, len(p.young)+len(p.old), 102)
	}
	assert.Equal(t, 2, p.find(7).open)
	assert.Equal(t, 1, p.find(5).open)
	for id := uint64(3000); len(p.young) > 10; id++ {
		p.state(id, true) // until there is room among the young ones
	}
	for _, id := range slices.Collect(maps.Keys(p.old))[:5] {
		p.state(id, true) // comes back from the old ones
	}
	for id := range p.young {
		assert.NotContains(t, p.old, id, "it is there twice")
	}
	assert.Zero(t, p.find(8).told, "nobody came for it for long")
	p.find(7).open, p.find(5).open = 0, 0
	for id := range uint64(1000) {
		p.state(5000+id, true)
		p.state(9, true).told = 2
	}
	assert.LessOrEqual(t, len(p.old), 50)
	assert.NotContains(t, p.old, uint64(7))
	assert.Equal(t, 2.0, p.find(9).told, "jobs of it came all the time")
	assert.Zero(t, p.find(123456).open)
	assert.NotContains(t, p.young, uint64(123456), "to ask does not remember")
}

// The breaker of an upstream may refuse a job although it was ready. What is known of the
// other upstreams does not become that of their neighbours.
func TestAfterARefusalTheRestIsAsItWas(t *testing.T) {
	f := newFixture(t, "expected", 4)
	us := upstreams(4)
	f.Listing(start, us[1].Address, sized{5: 1e9})
	f.Listing(start, us[3].Address, sized{5: 1e9})
	f.gates[us[1].Address].full, f.gates[us[3].Address].full = true, true
	a, err := f.Claim(start, Request{Project: 5}, nil)
	require.NoError(t, err)
	assert.Contains(t, []string{us[0].Address, us[2].Address}, a.Address)
	assert.Equal(t, selection.NotCached, a.Cache)
	f.gates[us[3].Address].full = false
	a, err = f.Claim(start, Request{Project: 5}, nil)
	require.NoError(t, err)
	assert.Equal(t, us[3].Address, a.Address)
	assert.Equal(t, selection.Cached, a.Cache)
}
