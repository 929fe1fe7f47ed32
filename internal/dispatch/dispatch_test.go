package dispatch

import (
	"cmp"
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

// fixture is a dispatcher over n upstreams. It serves waiting jobs after each event, as package balancer does.
type fixture struct {
	*Dispatcher
	t       testing.TB
	granted map[*Job]Grant // by Serve
	order   []*Job         // in which they were granted
}

func newFixture(t testing.TB, n int, change func(*Config)) *fixture {
	t.Helper()
	return newFixtureOver(t, n, pool.Settings{}, change)
}

// newFixtureOver sets defaults for the policy, the detector and the interval: least-in-flight, 100 stalled joblets, 5 s.
func newFixtureOver(t testing.TB, n int, s pool.Settings, change func(*Config)) *fixture {
	t.Helper()
	threshold, err := overload.Settings{Policy: "threshold", Stalled: 100, Reset: 0.8}.Detector()
	require.NoError(t, err)
	if s.Detector == nil {
		s.Detector = threshold
	}
	s.Policy, s.Interval = cmp.Or[selection.Policy](s.Policy, selection.LeastInFlight{}), cmp.Or(s.Interval, 5*time.Second)
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

// denied lets a new job arrive, and returns the error that it gets at once.
func (f *fixture) denied(now time.Time, r Request) error {
	f.t.Helper()
	g, granted := f.Arrive(now, f.Begin(r))
	require.True(f.t, granted, "it should not wait")
	return g.Err
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

	f.load(start.Add(3*time.Minute), 0, 1000)
	f.wait(start.Add(3*time.Minute), Request{})
	f.claim(start.Add(4*time.Minute), f.Begin(Request{Priority: selection.High})) // it may overtake a low one
}

func half(overload.Sample) overload.Level { return 0.75 } // admits half of the low jobs, by project

// Jobs of projects that no upstream admits do not block other jobs.
func TestRefusedProjectsHoldUpNobody(t *testing.T) {
	f := newFixtureOver(t, 1, pool.Settings{Detector: func() overload.Detector { return half }, Interval: time.Hour}, nil)
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
		require.ErrorIs(t, f.denied(start, Request{Among: among}), pool.ErrNoneEligible, "%v", among)
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
	f := newFixtureOver(t, 1, pool.Settings{Heavy: pool.HeavySettings{Projects: []string{"big"}}}, nil)
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
	f := newFixtureOver(t, 2, pool.Settings{Policy: s}, nil)
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

// counting is a policy that counts the views it gets.
type counting struct {
	selection.Policy
	views *int
}

func (c counting) Local() {}

func (c counting) Pick(j selection.Job, views []selection.View, rng *rand.Rand) int {
	*c.views += len(views)
	return c.Policy.Pick(j, views, rng)
}

// refusing is a dispatcher over n upstreams that all refuse connections.
func refusing(t testing.TB, n int) (f *fixture, views *int) {
	views = new(int)
	return newFixtureOver(t, n, pool.Settings{Policy: counting{selection.DefaultExpected(), views}}, nil), views
}

// refuse lets every upstream refuse a job, each after some time, until it pauses or ends.
func (f *fixture) refuse(now time.Time, j *Job, after time.Duration) (refusals int, end time.Time, next Next) {
	been := map[string]bool{}
	for next.Again = true; next.Again && next.Pause == 0; refusals++ {
		g := f.claim(now, j)
		require.False(f.t, been[g.Assignment.Address], "it has tried this upstream before")
		been[g.Assignment.Address] = true
		now = now.Add(after)
		next = f.fail(now, g, Failure{Outcome: pool.Refused})
	}
	return refusals, now, next
}

// The work for a job that every upstream refuses is linear in the upstreams.
func TestWorkForAJobThatAllRefuse(t *testing.T) {
	for _, n := range []int{14, 200, 1000, 4000} {
		f, views := refusing(t, n)
		refusals, _, next := f.refuse(start, f.Begin(Request{Project: 7}), 0)
		assert.Equal(t, n, refusals, "each is tried")
		assert.Positive(t, next.Pause, "before all are tried again")
		assert.Less(t, *views, 40*n, "%d upstreams", n)
	}
}

// A job ends when its queue timeout has passed, however many upstreams refuse it.
func TestRefusalsEndInTime(t *testing.T) {
	for own, want := range map[time.Duration]int{0: 1001, 2 * time.Second: 201} {
		f, _ := refusing(t, 3000)
		refusals, end, next := f.refuse(start, f.Begin(Request{Queue: own, Arrived: start}), 10*time.Millisecond)
		assert.Equal(t, []any{want, Next{}}, []any{refusals, next})
		assert.Equal(t, start.Add(time.Duration(want)*10*time.Millisecond), end)
	}
}

// While all breakers are open, a job pauses after some refusals: all upstreams have refused other jobs.
func TestRefusalsWhileAllBreakersAreOpen(t *testing.T) {
	for _, n := range []int{20, 200} {
		f, _ := refusing(t, n)
		for _, u := range f.Pool().States(start) {
			for range 2 {
				f.Pool().Checked(start, u.Address, assert.AnError)
			}
		}
		refusals, _, next := f.refuse(start, f.Begin(Request{}), 0)
		assert.Equal(t, min(n, maxPanicRefusals), refusals)
		assert.Positive(t, next.Pause)
	}
}

// Many jobs that can go to an upstream are granted in steps, in their order.
func TestManyGrantsInSteps(t *testing.T) {
	f := newFixture(t, 1, func(c *Config) { c.Queue.Jobs = 5000 })
	f.load(start, 0, 1000)
	var jobs []*Job
	for range 5000 {
		jobs = append(jobs, f.wait(start, Request{}))
	}
	f.Pool().Report(start, address(0), pool.Report{At: start.Add(1), CoresBusy: -1, Completed: -1, Wait: math.NaN()})
	granted := 0
	for more := true; more; {
		var some []Grant
		some, more = f.ServeSome(start)
		require.LessOrEqual(t, len(some), serveWork/grantWork)
		for _, g := range some {
			require.Same(t, jobs[granted], g.Job)
			granted++
		}
	}
	assert.Equal(t, len(jobs), granted)
}
