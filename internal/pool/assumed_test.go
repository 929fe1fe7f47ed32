package pool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// Where no listing ever refutes them, assumptions are bounded by forgetting
// the old ones: what is fetched now is what the next jobs look for.
func TestTheLatestProjectsAreAssumed(t *testing.T) {
	f := newFixture(t, "least-in-flight", 1)
	now := start
	for project := range uint64(2*maxAssumed + 1) {
		now = now.Add(time.Millisecond)
		l, err := f.Claim(now, Request{Project: project + 1}, nil)
		require.NoError(t, err)
		l.Answered(now, true, nil)
		l.Done(now, Answered)
	}
	status := func(project uint64) selection.Cache {
		return f.set[0].cache(project, now, &f.cfg)
	}
	assert.Equal(t, selection.AssumedCached, status(2*maxAssumed+1))
	assert.Equal(t, selection.NotCached, status(1))
	assert.LessOrEqual(t, f.States(now)[0].Assumed, maxAssumed)
}

// A refusal for load says nothing about data that an earlier job fetched.
func TestARefusalKeepsWhatAnotherJobFetched(t *testing.T) {
	f := newFixture(t, "least-in-flight", 1)
	claim := func() *Assignment {
		l, err := f.Claim(start, Request{Project: 7}, nil)
		require.NoError(t, err)
		return l
	}
	first := claim()
	require.Equal(t, selection.NotCached, first.Cache)
	first.Answered(start, true, nil)
	first.Done(start, Answered)

	second := claim()
	require.Equal(t, selection.AssumedCached, second.Cache)
	second.Done(start, NotStarted)
	third := claim()
	assert.Equal(t, selection.AssumedCached, third.Cache)
	third.Done(start, Refused)
	assert.Equal(t, selection.NotCached, claim().Cache, "it may have restarted")
}
