package dispatch

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

func bounded(s ProjectSettings) func(*Config) { return func(c *Config) { c.Projects = s } }

// A project has at most so many jobs in flight. Its further ones wait, and others
// pass them by.
func TestAProjectAtItsLimitWaits(t *testing.T) {
	f := newFixture(t, 2, bounded(ProjectSettings{Limit: 2}))
	first := f.claim(start, f.Begin(Request{Project: 1}))
	f.claim(start, f.Begin(Request{Project: 1}))
	third := f.wait(start, Request{Project: 1})
	assert.Equal(t, ProjectLoad{InFlight: 2, Waiting: 1, Limit: 2}, f.Project(start, 1))
	assert.Equal(t, 1, f.Limited(start))
	for i := range 5 {
		f.claim(start, f.Begin(Request{}))
		f.claim(start, f.Begin(Request{Project: uint64(2 + i)}))
	}
	assert.Empty(t, f.granted)

	now := start.Add(time.Second)
	first.Assignment.Done(now, pool.Answered)
	f.serve(now)
	require.NoError(t, f.granted[third].Err)
	assert.Len(t, f.granted, 1)
	assert.Equal(t, time.Second, third.waited)

	f.SetProjects(ProjectSettings{})
	f.serve(now)
	assert.Zero(t, f.Waiting(), "without a limit nobody is held")
}

// A share of the jobs in flight bounds a project only while no upstream has a free core, and one job of
// it may always go.
func TestAShareOfAFullFleet(t *testing.T) {
	f := newFixture(t, 1, bounded(ProjectSettings{Limit: 0.5}))
	full := func(now time.Time, jobs float64) {
		f.Pool().Report(now, address(0), pool.Report{
			At: now, Running: [2]float64{jobs, 0}, Cores: 4, CoresBusy: -1, Completed: -1, Wait: math.NaN(),
		})
		f.serve(now)
	}
	full(start, 0)
	first := f.claim(start, f.Begin(Request{Project: 1}))
	for range 2 {
		f.claim(start, f.Begin(Request{Project: 1})) // a core is free
	}
	full(start.Add(1), 4)
	waits := f.wait(start.Add(1), Request{Project: 1})
	assert.Equal(t, ProjectLoad{InFlight: 3, Waiting: 1, Limit: 2}, f.Project(start.Add(1), 1))
	f.claim(start.Add(1), f.Begin(Request{Project: 2})) // the first of its project
	f.claim(start.Add(1), f.Begin(Request{Project: 3}))
	f.claim(start.Add(1), f.Begin(Request{Project: 2}))
	assert.Equal(t, 1, f.Limited(start.Add(1)), "three of six")
	full(start.Add(2), 6)
	assert.Equal(t, 1, f.Waiting())
	first.Assignment.Done(start.Add(3), pool.Answered)
	f.serve(start.Add(3))
	assert.NotNil(t, f.granted[waits].Assignment, "two of five")
}

// A job that has waited as long as it may is told that its project is the reason.
func TestWhyAJobWaited(t *testing.T) {
	f := newFixture(t, 1, bounded(ProjectSettings{Limit: 1}))
	f.claim(start, f.Begin(Request{Project: 1}))
	held := f.wait(start, Request{Project: 1})
	now := held.GiveUpAt()
	require.EqualError(t, f.Waited(now, held), "the project has as many jobs in flight as it may have (1)")
	require.ErrorIs(t, f.Waited(now, held), ErrAtLimit)
	require.True(t, f.GiveUp(held))
	require.ErrorIs(t, f.Waited(now, held), ErrWaited, "it does not wait any more")

	f.load(now, 0, 1000)
	other := f.wait(now, Request{Project: 2})
	require.ErrorIs(t, f.Waited(now, other), ErrWaited)
}

// A job that may go to some upstreams only does not wait for its project either.
func TestAJobForSomeUpstreamsOfAProjectAtItsLimit(t *testing.T) {
	f := newFixture(t, 2, bounded(ProjectSettings{Limit: 1}))
	f.claim(start, f.Begin(Request{Project: 1}))
	g, granted := f.Arrive(start, f.Begin(Request{Project: 1, Among: []string{address(0)}}))
	require.True(t, granted)
	require.ErrorIs(t, g.Err, ErrAtLimit)
	f.claim(start, f.Begin(Request{Project: 2, Among: []string{address(0)}}))
}

func TestProjectSettings(t *testing.T) {
	for want, s := range map[string]ProjectSettings{
		"projects.limit: -1 is not between 0 and 100000":                    {Limit: -1},
		"projects.limit: 2.5 is neither a whole number nor a share below 1": {Limit: 2.5},
	} {
		var f settings.Faults
		s.Check(f.In("projects"))
		require.EqualError(t, f.Err(), want)
	}
}
