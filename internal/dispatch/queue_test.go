package dispatch

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

// jobThatWaits is a job that can wait.
func jobThatWaits(p selection.Priority, bytes int64) *Job {
	return &Job{Request: Request{Priority: p, Bytes: bytes}}
}

// naive is the simplest queue: a slice in order of arrival.
type naive []*Job

func (n naive) order() []*Job {
	var out []*Job
	for _, p := range []selection.Priority{selection.High, selection.Low} {
		for _, e := range n {
			if e.Priority == p {
				out = append(out, e)
			}
		}
	}
	return out
}

func (n naive) bytes() (sum int64) {
	for _, e := range n {
		sum += e.Bytes
	}
	return sum
}

func (n naive) push(e *Job, cfg QueueSettings) (naive, []*Job, bool) {
	fits := func(n naive) bool { return len(n) < cfg.Jobs && n.bytes()+e.Bytes <= int64(cfg.Bytes) }
	rest, shed := slices.Clone(n), []*Job(nil)
	for e.Priority == selection.High && !fits(rest) {
		i := len(rest) - 1
		for i >= 0 && rest[i].Priority != selection.Low {
			i--
		}
		if i < 0 {
			break
		}
		shed = append(shed, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	if !fits(rest) {
		return n, nil, false
	}
	return append(rest, e), shed, true
}

// pass serves each job or passes it over, at random. The passed jobs are in order, without those that follow another one of a
// project at its limit, whatever leaves the queue. pass returns the rest of the queue.
func (n naive) pass(t *testing.T, q *queue, rng *rand.Rand) (rest naive) {
	var want, seen naive
	results, limited, passed := map[*Job]claimResult{}, rng.Uint64N(4), map[selection.Priority]bool{}
	for _, j := range n.order() {
		results[j] = []claimResult{served, passedOver}[rng.IntN(2)]
		if j.Project != limited {
			want = append(want, j)
			continue
		}
		if results[j] = atLimit; !passed[j.Priority] {
			want = append(want, j)
		}
		passed[j.Priority] = true
	}
	q.serve(func(j *Job) claimResult { seen = append(seen, j); return results[j] })
	require.Equal(t, want, seen)
	return slices.DeleteFunc(slices.Clone(n), func(j *Job) bool { return results[j] == served })
}

func TestAgainstNaiveQueue(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 1))
		cfg := QueueSettings{Jobs: 1 + rng.IntN(40), Bytes: settings.Size(1 + rng.Int64N(4000))}
		q := newQueue(cfg)
		var n naive
		for range 500 {
			switch k := rng.IntN(30); {
			case k < 19:
				e := jobThatWaits(selection.Priority(rng.IntN(2)), rng.Int64N(300))
				e.Project = rng.Uint64N(4)
				next, wantShed, ok := n.push(e, cfg)
				shed, pushed := q.push(start, e)
				require.Equal(t, ok, pushed)
				require.Equal(t, wantShed, shed)
				n = next
			case k < 29 && len(n) > 0:
				i := rng.IntN(len(n))
				require.True(t, q.remove(n[i]))
				require.False(t, q.remove(n[i]), "removed twice")
				n = slices.Delete(n, i, i+1)
			default:
				n = n.pass(t, &q, rng)
			}
			var order []*Job
			q.serve(func(j *Job) claimResult { order = append(order, j); return passedOver })
			require.Equal(t, n.order(), order)
			require.Equal(t, len(n), q.len())
			require.Equal(t, n.bytes(), q.bytes)
		}
	}
}

// Serve stops after some jobs in a row for which no upstream is eligible.
func TestServeStops(t *testing.T) {
	for name, c := range map[string]struct {
		replies      []claimResult // repeated
		asked, stays int
	}{
		"all are served":                 {[]claimResult{served}, 1000, 0},
		"none can be":                    {[]claimResult{noneEligible}, 8, 1000},
		"those passed over do not count": {[]claimResult{passedOver, passedOver, noneEligible}, 24, 1000},
		"nor do the served":              {[]claimResult{noneEligible, served}, 1000, 500},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(DefaultQueue())
			for range 1000 {
				_, ok := q.push(start, jobThatWaits(selection.Low, 0))
				require.True(t, ok)
			}
			asked := 0
			q.serve(func(*Job) claimResult {
				asked++
				return c.replies[(asked-1)%len(c.replies)]
			})
			assert.Equal(t, c.asked, asked)
			assert.Equal(t, c.stays, q.len())
		})
	}
}

func TestAFullQueueShedsLowForHigh(t *testing.T) {
	f := newFixture(t, 1, func(c *Config) { c.Queue.Jobs = 1 })
	f.load(start, 0, 1000)
	low := f.wait(start, Request{})
	err := f.denied(start, Request{})
	require.ErrorIs(t, err, ErrFull, "low does not push out low")
	require.NotErrorIs(t, err, ErrDisplaced)
	require.EqualError(t, err, "too many jobs wait for an upstream (1)")
	high := f.wait(start, Request{Priority: selection.High})
	require.ErrorIs(t, f.granted[low].Err, ErrDisplaced)
	f.load(start.Add(1), 0, 0)
	require.NoError(t, f.granted[high].Err)

	f.load(start.Add(2), 0, 1000)
	f.wait(start.Add(2), Request{Bytes: 5})
	assert.EqualValues(t, 5, f.WaitingBytes())
}

// The queue timeout, the job's own or the configured one, bounds the sum of all waits.
func TestHowLongAJobWaits(t *testing.T) {
	for own, want := range map[time.Duration]time.Duration{
		0: 9 * time.Second, 5 * time.Second: 4 * time.Second, time.Millisecond: 0,
	} {
		f := newFixture(t, 2, nil)
		f.load(start, 0, 1000)
		f.load(start, 1, 1000)
		j := f.wait(start, Request{Queue: own})
		now := start.Add(time.Second)
		f.load(now, 0, 0)
		assert.False(t, f.GiveUp(j), "it was served first")
		f.fail(now, f.granted[j], Failure{Outcome: pool.Refused})
		_, granted := f.Arrive(now, j)
		require.False(t, granted)
		assert.Equal(t, now.Add(want), j.GiveUpAt(), "own bound %v", own)
	}
}

func bounded(s ProjectSettings) func(*Config) { return func(c *Config) { c.Projects = s } }

// A project has a maximum number of jobs in flight. Its other jobs wait, and jobs of other projects overtake them.
func TestAProjectAtItsLimitWaits(t *testing.T) {
	f := newFixture(t, 2, bounded(ProjectSettings{Limit: 2}))
	first := f.claim(start, f.Begin(Request{Project: 1}))
	f.claim(start, f.Begin(Request{Project: 1}))
	third := f.wait(start, Request{Project: 1})
	assert.Equal(t, []ProjectLoad{{Name: "one", InFlight: 2, Waiting: 1, Limit: 2}}, f.Projects(start, map[uint64]string{1: "one"}))
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
	assert.Equal(t, time.Second, third.wait.total)

	f.wait(now, Request{Project: 1})
	f.SetProjects(ProjectSettings{})
	f.serve(now)
	assert.Zero(t, f.Waiting(), "without a limit nobody is held")
}

// A limit given as a share of the jobs in flight applies only while no upstream has a free core, and is at least one job.
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
	assert.Equal(t, []ProjectLoad{{Name: "one", InFlight: 3, Waiting: 1, Limit: 2}}, f.Projects(start.Add(1), map[uint64]string{1: "one"}))
	f.claim(start.Add(1), f.Begin(Request{Project: 2})) // the first of its project
	f.claim(start.Add(1), f.Begin(Request{Project: 3}))
	f.claim(start.Add(1), f.Begin(Request{Project: 2}))
	assert.Equal(t, 1, f.Limited(start.Add(1)), "three of six")
	full(start.Add(2), 6)
	assert.Equal(t, 1, f.Waiting())
	first.Assignment.Done(start.Add(3), pool.Answered)
	f.serve(start.Add(3))
	assert.NotNil(t, f.granted[waits].Assignment, "two of five")
	f.SetProjects(ProjectSettings{})
	f.claim(start.Add(3), f.Begin(Request{Project: 1})) // without a limit

	f = newFixture(t, 1, bounded(ProjectSettings{Limit: 0.5}))
	full(start, 4)
	f.claim(start, f.Begin(Request{Project: 1}))
	f.wait(start, Request{Project: 1})
	f.wait(start, Request{Project: 1})
	full(start.Add(1), 3)
	assert.Equal(t, 1, f.Waiting(), "one takes the last free core, and the other waits")
}

// The error of a job whose queue timeout has passed says that its project is at its limit.
func TestWhyAJobWaited(t *testing.T) {
	f := newFixture(t, 1, bounded(ProjectSettings{Limit: 1}))
	f.claim(start, f.Begin(Request{Project: 1}))
	held := f.wait(start, Request{Project: 1})
	now := held.GiveUpAt()
	require.EqualError(t, f.Waited(now, held), "the project has reached its limit of jobs in flight (1)")
	require.ErrorIs(t, f.Waited(now, held), ErrAtLimit)
	require.True(t, f.GiveUp(held))
	require.ErrorIs(t, f.Waited(now, held), ErrWaited, "it does not wait any more")

	f.load(now, 0, 1000)
	other := f.wait(now, Request{Project: 2})
	require.ErrorIs(t, f.Waited(now, other), ErrWaited)
	require.Zero(t, f.Limited(now))
}

// A job that is restricted to some upstreams does not wait for its project's limit either.
func TestAJobForSomeUpstreamsOfAProjectAtItsLimit(t *testing.T) {
	f := newFixture(t, 2, bounded(ProjectSettings{Limit: 1}))
	f.claim(start, f.Begin(Request{Project: 1}))
	require.ErrorIs(t, f.denied(start, Request{Project: 1, Among: []string{address(0)}}), ErrAtLimit)
	f.claim(start, f.Begin(Request{Project: 2, Among: []string{address(0)}}))
}
