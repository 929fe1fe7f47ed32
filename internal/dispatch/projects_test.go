package dispatch

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

func bounded(s ProjectSettings) func(*Config) { return func(c *Config) { c.Projects = s } }

// A project has at most so many jobs in flight. Its further ones wait, and others
// pass them by.
func TestAProjectAtItsLimitWaits(t *testing.T) {
	own := intake.Key("own")
	f := newFixture(t, 2, bounded(ProjectSettings{Limit: 2, Overrides: []ProjectLimit{{"own", 1}, {"free", 0}}}))
	first := f.claim(start, f.Begin(Request{Project: 1}))
	f.claim(start, f.Begin(Request{Project: 1}))
	third := f.wait(start, Request{Project: 1})
	f.claim(start, f.Begin(Request{Project: own}))
	f.wait(start, Request{Project: own})
	assert.Equal(t, ProjectLoad{InFlight: 2, Waiting: 1, Limit: 2}, f.Project(1))
	assert.Equal(t, ProjectLoad{InFlight: 1, Waiting: 1, Limit: 1}, f.Project(own))
	assert.Equal(t, 2, f.Limited())
	for range 5 {
		f.claim(start, f.Begin(Request{}))
		f.claim(start, f.Begin(Request{Project: intake.Key("free")}))
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

// The wait expected is the mean time between two jobs that leave, for each that goes
// before and for the job itself.
func TestAJobThatWouldWaitTooLongIsRefused(t *testing.T) {
	f := newFixture(t, 1, bounded(ProjectSettings{Limit: 1, Lag: 10 * time.Second}))
	now := start
	running := f.claim(now, f.Begin(Request{Project: 1}))
	var line []*Job
	for range 4 { // nobody knows yet how long they take
		line = append(line, f.wait(now, Request{Project: 1, Queue: time.Hour}))
	}
	for _, next := range line[:2] {
		now = now.Add(4 * time.Second)
		running.Assignment.Done(now, pool.Answered)
		f.serve(now)
		running = f.granted[next]
	}
	// Two wait, and a job leaves each 4 s: a low one would wait 12 s.
	g, granted := f.Arrive(now, f.Begin(Request{Project: 1}))
	require.True(t, granted)
	var at *AtLimit
	require.ErrorAs(t, g.Err, &at)
	assert.Equal(t, AtLimit{Limit: 1, Wait: 12 * time.Second, RetryAfter: 2 * time.Second}, *at)
	require.ErrorIs(t, g.Err, ErrAtLimit)
	assert.EqualError(t, g.Err, "the project has as many jobs in flight as it may have (1), and a new job would wait for 12s")

	f.wait(now, Request{Project: 1, Priority: selection.High}) // which goes before them
	f.claim(now, f.Begin(Request{Project: 2}))                 // which has nothing to do with them

	// Nothing ends any more: the estimate grows.
	now = now.Add(time.Minute)
	g, granted = f.Arrive(now, f.Begin(Request{Project: 1, Priority: selection.High}))
	require.True(t, granted)
	require.ErrorAs(t, g.Err, &at)
	assert.Equal(t, 68*time.Second, at.Wait, "twice 34 s")
}

// A job that came for another attempt has been let in before.
func TestARetryIsNotRefusedForItsProject(t *testing.T) {
	f := newFixture(t, 2, bounded(ProjectSettings{Limit: 1, Lag: time.Second}))
	j := f.Begin(Request{Project: 1})
	g := f.claim(start, j)
	waits := f.wait(start, Request{Project: 1})
	now := start.Add(3 * time.Second)
	f.wait(start, Request{Project: 1})
	require.True(t, f.fail(now, g, Failure{Outcome: pool.NoAnswer}).Again)
	require.NoError(t, f.granted[waits].Err)
	_, granted := f.Arrive(now, j)
	assert.False(t, granted, "it waits for its project's next turn")
}

// A job that has waited as long as it may is told that its project is the reason.
func TestWhyAJobWaited(t *testing.T) {
	f := newFixture(t, 1, bounded(ProjectSettings{Limit: 1}))
	f.claim(start, f.Begin(Request{Project: 1}))
	held := f.wait(start, Request{Project: 1})
	now := held.GiveUpAt()
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

// pushAll lets a job wait for each letter, which is its project; capitals are high.
func pushAll(t *testing.T, q *queue, letters string) (jobs []*Job) {
	t.Helper()
	for _, letter := range []byte(letters) {
		p := selection.Low
		if letter < 'a' {
			p = selection.High
		}
		j := &Job{Request: Request{Project: uint64(letter | 32), Priority: p}}
		_, ok := q.push(j)
		require.True(t, ok)
		jobs = append(jobs, j)
	}
	return jobs
}

// projectsOf are the projects of the waiting jobs in order.
func projectsOf(q *queue) (letters string) {
	for j := range q.all {
		letters += string(rune(j.Project))
	}
	return letters
}

// A project that comes with many jobs has one served for each of the others', high
// before low as ever.
func TestProjectsTakeTurns(t *testing.T) {
	for fair, want := range map[bool]string{true: "de" + "de" + "abc" + "ab" + "aa", false: "ddee" + "aaaabbc"} {
		q := &queue{bounds: DefaultQueue(), fair: fair}
		pushAll(t, q, "aaaaDDbbEEc")
		assert.Equal(t, want, projectsOf(q))
	}
	q := &queue{bounds: DefaultQueue(), fair: true}
	pushAll(t, q, "aaaaaaaaaa")
	left := 5
	q.serve(func(*Job) reply {
		if left--; left >= 0 {
			return served
		}
		return noneEligible
	})
	pushAll(t, q, "bb")
	assert.Equal(t, "bab"+"aaaa", projectsOf(q), "a newcomer begins with the turn under way")
}

// The order is that of turns, said in another way.
func TestAgainstNaiveTurns(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 3))
		q := &queue{bounds: DefaultQueue(), fair: true}
		rounds := map[selection.Priority][]string{}
		round := map[byte]int{}
		for range 100 {
			letter := "aaaaabbcdeAABC"[rng.IntN(14)]
			j := pushAll(t, q, string(letter))[0]
			n := round[letter]
			if round[letter]++; n == len(rounds[j.Priority]) {
				rounds[j.Priority] = append(rounds[j.Priority], "")
			}
			rounds[j.Priority][n] += string(letter | 32)
		}
		want := strings.Join(rounds[selection.High], "") + strings.Join(rounds[selection.Low], "")
		require.Equal(t, want, projectsOf(q), "seed %d", seed)
	}
}

// Where the queue is full, the project with the most jobs in it loses its last.
func TestAFullQueueIsFair(t *testing.T) {
	f := newFixture(t, 1, func(c *Config) { c.Queue.Jobs, c.Projects.Fair = 3, true })
	f.load(start, 0, 1000)
	flood := []*Job{f.wait(start, Request{Project: 1}), f.wait(start, Request{Project: 1}), f.wait(start, Request{Project: 1})}
	g, granted := f.Arrive(start, f.Begin(Request{Project: 1}))
	require.True(t, granted)
	require.ErrorIs(t, g.Err, ErrFull, "its own jobs do not give way")
	f.wait(start, Request{Project: 2})
	f.serve(start)
	require.ErrorIs(t, f.granted[flood[2]].Err, ErrFull)
	require.NotErrorIs(t, f.granted[flood[2]].Err, ErrDisplaced, "no high job took the place")
	assert.Equal(t, 3, f.Waiting())
}

func TestProjectSettings(t *testing.T) {
	for want, s := range map[string]ProjectSettings{
		"projects.limit: -1 is not between 0 and 1000000":              {Limit: -1},
		"projects.lag: -1s must not be negative":                       {Lag: -time.Second},
		"projects.overrides[0].id: it is missing":                      {Overrides: []ProjectLimit{{"", 1}}},
		`projects.overrides[1].id: "a" has a limit above`:              {Overrides: []ProjectLimit{{"a", 1}, {"a", 2}}},
		"projects.overrides[0].limit: -1 is not between 0 and 1000000": {Overrides: []ProjectLimit{{"a", -1}}},
		"projects.overrides: 10001 are more than 10000":                {Overrides: make([]ProjectLimit, 10001)},
	} {
		var f settings.Faults
		s.Check(f.In("projects"))
		require.EqualError(t, f.Err(), want)
	}
	var f settings.Faults
	ProjectSettings{Lag: time.Second}.Check(&f)
	require.NoError(t, f.Err())
	assert.Len(t, f.All(), 1, "a lag without a limit does nothing")
	f = settings.Faults{}
	ProjectSettings{Lag: time.Second, Overrides: []ProjectLimit{{"a", 1}}}.Check(&f)
	assert.Empty(t, f.All())
}
