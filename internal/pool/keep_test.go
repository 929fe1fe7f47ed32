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
	project := f.projects.of(7)
	f.fetches.observe(&project.fetches, 9*time.Second)
	f.answers.observe(&project.answers, 3*time.Second)
	project.listed = 1e9
	f.sizes.observe(1e9, 400, 1)
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
	assert.Equal(t, first.fetches.expected(first.projects.find(7).fetches), next.fetches.expected(next.projects.find(7).fetches))
	assert.Equal(t, first.fetches.expected(logMean{}), next.fetches.expected(next.projects.find(8).fetches), "of projects that were never seen, too")
	assert.Equal(t, first.answers.expected(first.projects.find(7).answers), next.answers.expected(next.projects.find(7).answers))
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
	const old = learnedProjects / 2
	for project := range uint64(old + 3*maxKept) {
		f.fetches.observe(&f.projects.of(project).fetches, time.Second)
		if project%8 > 0 {
			f.projects.of(project).listed = 1
		}
	}
	for project := range uint64(3) {
		f.answers.observe(&f.projects.find(project).answers, time.Second)
	}
	l := f.Learned()
	assert.Len(t, l.Fetches.Projects, maxKept)
	assert.Empty(t, l.Answers.Projects, "the old ones are not looked at")
	assert.Len(t, l.Sizes, maxKept)
	for project := range l.Fetches.Projects {
		require.GreaterOrEqual(t, project, uint64(old), "those that were seen lately")
	}
	for project, bytes := range l.Sizes {
		require.Positive(t, bytes)
		require.GreaterOrEqual(t, project, uint64(old))
	}
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
