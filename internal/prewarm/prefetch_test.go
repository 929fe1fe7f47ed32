package prewarm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestPendingPacesEachUpstream(t *testing.T) {
	p := newPending()
	p.add([]Prefetch{{Project: "1", Upstream: "a", Leaving: "x"}, {Project: "2", Upstream: "a", Leaving: "x"}, {Project: "3", Upstream: "b", Leaving: "x"}})
	assert.ElementsMatch(t, []Prefetch{{Project: "1", Upstream: "a", Leaving: "x"}, {Project: "3", Upstream: "b", Leaving: "x"}}, p.due(epoch))
	p.add([]Prefetch{{Project: "4", Upstream: "b", Leaving: "y"}})
	assert.Empty(t, p.due(epoch.Add(time.Second-1)))
	assert.ElementsMatch(t, []Prefetch{{Project: "2", Upstream: "a", Leaving: "x"}, {Project: "4", Upstream: "b", Leaving: "y"}}, p.due(epoch.Add(time.Second)))
	assert.Empty(t, p.due(epoch.Add(time.Hour)))
	assert.Empty(t, p.of)
	assert.Empty(t, p.last, "nothing is remembered of upstreams that have their turn again")

	p.add(make([]Prefetch, 2*maxPending))
	p.add(make([]Prefetch, 1))
	assert.Equal(t, maxPending, p.waiting)
}
