package prewarm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPendingPacesEachUpstream(t *testing.T) {
	p := newPending()
	p.add([]Prefetch{{"1", "a", "x"}, {"2", "a", "x"}, {"3", "b", "x"}})
	assert.ElementsMatch(t, []Prefetch{{"1", "a", "x"}, {"3", "b", "x"}}, p.due(epoch))
	p.add([]Prefetch{{"4", "b", "y"}})
	assert.Empty(t, p.due(epoch.Add(time.Second-1)))
	assert.ElementsMatch(t, []Prefetch{{"2", "a", "x"}, {"4", "b", "y"}}, p.due(epoch.Add(time.Second)))
	assert.Empty(t, p.due(epoch.Add(time.Hour)))
	assert.Empty(t, p.of)
	assert.Empty(t, p.last, "nothing is remembered of upstreams that have their turn again")

	p.add(make([]Prefetch, 2*maxPending))
	p.add(make([]Prefetch, 1))
	assert.Equal(t, maxPending, p.waiting)
}
