package dispatch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// fixture is a dispatcher over n upstreams. It serves after each event, as a shell does.
type fixture struct {
	*Dispatcher
	t       testing.TB
	granted map[*Job]Grant // by Serve
	order   []*Job         // in which they were granted
}

func newFixture(t testing.TB, n int, change func(*Config)) *fixture {
	t.Helper()
	policy, err := selection.New("least-in-flight")
	require.NoError(t, err)
	detector, err := overload.Settings{Policy: "threshold", Stalled: 100, Reset: 0.8}.Detector()
	require.NoError(t, err)
	return newFixtureOver(t, n, pool.Settings{Policy: policy, Detector: detector, Interval: 5 * time.Second}, change)
}

func newFixtureOver(t testing.TB, n int, s pool.Settings, change func(*Config)) *fixture {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 1))
	s.Breaker = health.Default()
	s.Breaker.Failures = 1e6 // practically never
	upstreams, err := pool.New(pool.Config{Settings: s, Gate: breaker.New, Rand: rng})
	require.NoError(t, err)
	set := make([]pool.Upstream, n)
	for i := range set {
		set[i].Address = address(i)
	}
	upstreams.Set(start, set)
	cfg := Config{Pool: upstreams, Rand: rand.New(rand.NewPCG(2, 2)), Retry: DefaultRetry(), Queue: DefaultQueue()}
	cfg.Retry.Budget = 1
	if change != nil {
		change(&cfg)
	}
	d, err := New(cfg)
	require.NoError(t, err)
	return &fixture{Dispatcher: d, t: t, granted: map[*Job]Grant{}}
}

func address(i int) string { return fmt.Sprintf("10.0.0.%d:9000", i) }

// load reports that upstream i is overloaded, or that it is not.
func (f *fixture) load(now time.Time, i int, stalled float64) {
	f.Pool().Report(now, address(i), pool.Report{
		At: now, Stalled: [2]float64{stalled, 0}, CoresBusy: -1, Completed: -1,
		Wait: math.NaN(),
	})
	f.serve(now)
}

func (f *fixture) serve(now time.Time) {
	for _, g := range f.Serve(now) {
		_, twice := f.granted[g.Job]
		require.False(f.t, twice, "granted twice")
		f.granted[g.Job] = g
		f.order = append(f.order, g.Job)
	}
}

// wait lets a new job arrive, and requires that it waits.
func (f *fixture) wait(now time.Time, r Request) *Job {
	f.t.Helper()
	j := f.Begin(r)
	_, granted := f.Arrive(now, j)
	require.False(f.t, granted, "it should wait")
	f.serve(now)
	return j
}

// claim lets a job arrive, and requires that it goes to an upstream at once.
func (f *fixture) claim(now time.Time, j *Job) Grant {
	f.t.Helper()
	g, granted := f.Arrive(now, j)
	require.True(f.t, granted, "it should not wait")
	require.NoError(f.t, g.Err)
	require.Same(f.t, j, g.Job)
	return g
}

// fail ends a job's attempt with a failure, which another attempt may follow.
func (f *fixture) fail(now time.Time, g Grant, failure Failure) Next {
	failure.Repeatable = true
	if failure.ConnectTimedOut {
		g.Assignment.Unreached(now)
	}
	g.Assignment.Done(now, failure.Outcome)
	next := f.Failed(now, g.Job, failure)
	f.serve(now)
	return next
}

func TestNewcomersDoNotOvertake(t *testing.T) {
	f := newFixture(t, 1, nil)
	f.load(start, 0, 1000)
	first := f.wait(start, Request{})
	// The report is stale by now, so the arrival of a job serves the queue.
	second := f.wait(start.Add(time.Minute), Request{})
	assert.NoError(t, f.granted[first].Err)
	assert.NoError(t, f.granted[second].Err)
	assert.Len(t, f.granted, 2)

	f.load(start.Add(2*time.Minute), 0, 1000)
	f.wait(start.Add(2*time.Minute), Request{})
	f.load(start.Add(2*time.Minute+1), 0, 0)
	assert.Len(t, f.granted, 3)

	f.load(start.Add(3*time.Minute), 0, 1000)
	f.wait(start.Add(3*time.Minute), Request{})
	f.claim(start.Add(4*time.Minute), f.Begin(Request{Priority: selection.High})) // it may overtake a low one
}

// A job that has tried all upstreams gets its error at once, however many jobs wait before it.
func TestAllTriedDoesNotWaitBehindOthers(t *testing.T) {
	f := newFixture(t, 1, nil)
	tourist := f.Begin(Request{})
	g := f.claim(start, tourist)
	f.load(start.Add(1), 0, 1000)
	for range 20 {
		f.wait(start.Add(1), Request{})
	}
	require.True(t, f.fail(start.Add(1), g, Failure{Outcome: pool.NotStarted}).Again)
	g, granted := f.Arrive(start.Add(1), tourist)
	require.True(t, granted)
	assert.ErrorIs(t, g.Err, pool.ErrAllTried)

	f = newFixture(t, 2, nil)
	g = f.claim(start, f.Begin(Request{Among: []string{address(0)}}))
	f.load(start, 1, 1000)
	g.Job.among = nil
	require.True(t, f.fail(start, g, Failure{Outcome: pool.NotStarted}).Again)
	_, granted = f.Arrive(start, g.Job)
	require.False(t, granted)
	f.Pool().Set(start, []pool.Upstream{{Address: address(0)}})
	f.serve(start)
	assert.ErrorIs(t, f.granted[g.Job].Err, pool.ErrAllTried, "nor if the others leave while it waits")
}

// Retries that wait for the one upstream they have not tried do not block jobs that can go elsewhere.
func TestRetriesThatWaitHoldUpNobody(t *testing.T) {
	f := newFixture(t, 2, nil)
	f.load(start, 0, 1000)
	now := start.Add(1)
	for i := range 20 {
		j := f.Begin(Request{Priority: selection.High})
		g, granted := f.Arrive(now, j)
		require.Equal(t, i == 0, granted, "jobs that wait come first")
		if f.serve(now); !granted {
			g = f.granted[j]
			delete(f.granted, j)
		}
		require.Equal(t, address(1), g.Assignment.Address)
		require.True(t, f.fail(now, g, Failure{Outcome: pool.Refused}).Again)
		_, granted = f.Arrive(now, j)
		require.False(t, granted)
		now = now.Add(time.Second) // for the retry budget
		f.load(now, 0, 1000)
	}
	require.Equal(t, 20, f.Waiting())
	j := f.wait(now, Request{}) // behind those who go first, and served in the same instant
	assert.Equal(t, address(1), f.granted[j].Assignment.Address)
	assert.Equal(t, 20, f.Waiting())
}

func half(overload.Sample) overload.Level { return 0.75 } // admits half of the low jobs, by project

// Jobs of projects that no upstream admits do not block other jobs.
func TestRefusedProjectsHoldUpNobody(t *testing.T) {
	policy, err := selection.New("least-in-flight")
	require.NoError(t, err)
	f := newFixtureOver(t, 1, pool.Settings{
		Policy: policy, Detector: func() overload.Detector { return half }, Interval: time.Hour,
	}, nil)
	f.load(start, 0, 0)
	granted := 0
	for i := range uint64(1000) {
		j := f.Begin(Request{Project: (i + 1) * 0x9e3779b97f4a7c15})
		if _, ok := f.Arrive(start, j); ok {
			granted++
		}
		f.serve(start)
	}
	granted += len(f.granted)
	assert.Greater(t, granted, 450)
	assert.Less(t, granted, 550)
	assert.Equal(t, 1000-granted, f.Waiting())
}

// A job that is restricted to some upstreams gets an error at once if none of them is eligible. It neither waits nor is
// blocked by jobs that do.
func TestAJobForSomeUpstreamsDoesNotWait(t *testing.T) {
	f := newFixture(t, 2, nil)
	f.Pool().Set(start, []pool.Upstream{{Address: address(0)}, {Address: address(1), Draining: true}})
	f.Pool().Report(start, address(0), pool.Report{At: start, Stalled: [2]float64{1000, 0}, CoresBusy: -1, Completed: -1, Wait: math.NaN()})
	waits := f.Begin(Request{})
	_, granted := f.Arrive(start, waits)
	require.False(t, granted)
	for _, among := range [][]string{{}, {address(0)}, {address(1)}, {"10.9.9.9:9000"}} {
		g, granted := f.Arrive(start, f.Begin(Request{Among: among}))
		require.True(t, granted, "%v", among)
		require.ErrorIs(t, g.Err, pool.ErrNoneEligible)
	}
	f.Pool().Set(start, []pool.Upstream{{Address: address(0)}, {Address: address(1)}})
	for range 3 {
		g := f.claim(start.Add(time.Minute), f.Begin(Request{Among: []string{address(1)}, Fallbacks: true}))
		require.Equal(t, address(1), g.Assignment.Address, "though the other has fewer jobs")
		require.Empty(t, g.Assignment.Fallbacks, "the other upstreams are not allowed")
	}
}

// Jobs that wait for an ordinary upstream do not block heavy jobs.
func TestHeavyJobsPassOthers(t *testing.T) {
	detector, err := overload.Settings{Policy: "threshold", Stalled: 100, Reset: 0.8}.Detector()
	require.NoError(t, err)
	s := pool.Settings{Policy: selection.Random{}, Detector: detector, Interval: 5 * time.Second, Heavy: pool.HeavySettings{Projects: []string{"big"}}}
	f := newFixtureOver(t, 1, s, nil)
	f.Pool().Set(start, []pool.Upstream{{Address: address(0)}, {Address: address(1), Heavy: true}})
	f.load(start, 0, 1000)
	f.wait(start, Request{Project: 1, Priority: selection.High})
	heavy := f.wait(start, Request{Project: intake.Key("big")})
	require.Contains(t, f.granted, heavy)
	assert.Equal(t, address(1), f.granted[heavy].Assignment.Address)
	assert.Equal(t, 1, f.Waiting())
}

// seen is a policy that keeps the job that it was called with.
type seen struct{ job selection.Job }

func (s *seen) Pick(job selection.Job, _ []selection.View, _ *rand.Rand) int { s.job = job; return 0 }

// A policy sees the job's project and priority.
func TestWhatThePolicySees(t *testing.T) {
	s := &seen{}
	f := newFixtureOver(t, 2, pool.Settings{Policy: s, Detector: func() overload.Detector { return half }, Interval: time.Second}, nil)
	f.claim(start, f.Begin(Request{Project: 7, Priority: selection.High, DataBytes: 1e9}))
	assert.Equal(t, selection.High, s.job.Priority)
	assert.InDelta(t, 40, s.job.Fetch, 1, "at 25 MB/s")
	f.claim(start, f.Begin(Request{Project: 7, Data: &intake.Parts{Parts: []intake.Part{{Key: 7, Bytes: 1}}}}))
	assert.True(t, s.job.Prompt)
}

// A job that asks for fallbacks gets as many as there are retries.
func TestFallbacksForTheRetries(t *testing.T) {
	f := newFixture(t, 5, nil)
	assert.Len(t, f.claim(start, f.Begin(Request{Fallbacks: true})).Assignment.Fallbacks, 2)
	assert.Empty(t, f.claim(start, f.Begin(Request{})).Assignment.Fallbacks)
}
