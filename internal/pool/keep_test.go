package pool

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// practised is a pool that has learned something of everything.
func practised(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t, "expected", 2)
	address := f.set[0].Address
	for i := range 30 {
		now := start.Add(time.Duration(i) * time.Second)
		r := report(now, 0, 0)
		r.Cores, r.CoresBusy, r.Completed = 4, 2, float64(100*i)
		f.Report(now, address, r)
	}
	f.fetches.observe(7, 9*time.Second)
	f.answers.observe(7, 3*time.Second)
	f.sizes.sized(7, 1e9)
	f.sizes.observe(7, 400, 1)
	f.set[0].fetchFactor = 2
	return f
}

// What one pool has learned, the next one knows, also after a way through JSON.
func TestLearnedIsRestored(t *testing.T) {
	first := practised(t)
	text, err := json.Marshal(first.Learned())
	require.NoError(t, err)
	var l Learned
	require.NoError(t, json.Unmarshal(text, &l))
	next := newFixture(t, "expected", 0)
	require.NotEqual(t, first.fetchTime(7), next.fetchTime(7))
	now := start.Add(time.Minute)
	require.NoError(t, next.Restore(now, l))
	next.Set(now, upstreams(2))

	assert.Equal(t, first.fetchTime(7), next.fetchTime(7))
	assert.Equal(t, first.fetches.expected(7), next.fetches.expected(7))
	assert.Equal(t, first.fetches.expected(8), next.fetches.expected(8), "of projects that were never seen, too")
	assert.Equal(t, first.answers.expected(7), next.answers.expected(7))
	assert.Equal(t, 2.0, next.set[0].fetchFactor)
	assert.Equal(t, 1.0, next.set[1].fetchFactor)
	assert.Positive(t, next.set[0].rate.perCore())
	assert.Equal(t, first.set[0].rate.perCore(), next.set[0].rate.perCore())
	assert.Empty(t, next.restored)

	// The counter of completions goes on where it was.
	r := report(now, 0, 0)
	r.Cores, r.CoresBusy, r.Completed = 4, 2, 3000+100*30
	before := next.set[0].rate.perCore()
	next.Report(now, next.set[0].Address, r)
	assert.InEpsilon(t, before, next.set[0].rate.perCore(), 0.5, "the same pace, not a start from nothing")
}

func TestARestartedUpstreamLearnsAnew(t *testing.T) {
	first := practised(t)
	next := newFixture(t, "expected", 0)
	require.NoError(t, next.Restore(start.Add(time.Minute), first.Learned()))
	set := upstreams(2)
	set[0].StartedAt = start.Add(50 * time.Second)
	next.Set(start.Add(time.Minute), set)
	assert.Equal(t, 1.0, next.set[0].fetchFactor)
	assert.Zero(t, next.set[0].rate.perCore())
}

func TestLearnedIsBounded(t *testing.T) {
	f := newFixture(t, "expected", 1)
	for project := range uint64(3 * maxKept) {
		f.fetches.observe(project, time.Second)
		f.sizes.sized(project, 1)
	}
	l := f.Learned()
	assert.Len(t, l.Fetches.Projects, maxKept)
	assert.Len(t, l.Sizes, maxKept)
	require.NoError(t, f.Restore(start, l))
	l.Sizes = maps.Clone(l.Sizes)
	l.Sizes[1<<40] = 1
	assert.ErrorContains(t, f.Restore(start, l), "more than 4096")
}

// Whatever a file says, it does not get into the pool unless it can be true.
func TestWhatCannotHaveBeenLearned(t *testing.T) {
	address := upstreams(1)[0].Address
	for name, spoil := range map[string]func(*Learned){
		"nothing":        func(l *Learned) { *l = Learned{} },
		"start-up":       func(l *Learned) { l.Startup = 11 },
		"each byte":      func(l *Learned) { l.PerByte = math.NaN() },
		"a mean":         func(l *Learned) { l.Answers.All[0] = math.Inf(1) },
		"no observation": func(l *Learned) { l.Fetches.Projects[7] = [2]float64{1, 0} },
		"a size":         func(l *Learned) { l.Sizes[7] = -1 },
		"a factor":       func(l *Learned) { l.Upstreams[address] = LearnedUpstream{FetchFactor: 4} },
		"the future":     func(l *Learned) { l.Upstreams[address] = LearnedUpstream{FetchFactor: 1, At: start.Add(2 * time.Hour)} },
		"a rate":         func(l *Learned) { l.Upstreams[address] = LearnedUpstream{FetchFactor: 1, Busy: math.NaN()} },
	} {
		l := practised(t).Learned()
		spoil(&l)
		next := newFixture(t, "expected", 0)
		before := next.Learned()
		assert.Error(t, next.Restore(start.Add(time.Hour), l), name)
		assert.Equal(t, before, next.Learned(), name)
	}
	l := practised(t).Learned()
	assert.Equal(t, []uint64{7}, slices.Collect(maps.Keys(l.Sizes)))
	assert.NoError(t, newFixture(t, "expected", 0).Restore(start.Add(time.Hour), l))
}
