package pool

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/pkg/selection"
)

// A job that is refused for load does not affect data that an earlier job fetched.
func TestARefusalKeepsWhatAnotherJobFetched(t *testing.T) {
	f := newFixture(t, "least-in-flight", 1)
	claim := func() *Assignment { return f.must(start, Request{Project: 7}, nil) }
	first := claim()
	require.Equal(t, selection.NotCached, first.Cache)
	answer(first, start)

	second := claim()
	require.Equal(t, selection.AssumedCached, second.Cache)
	second.Done(start, NotStarted)
	third := claim()
	assert.Equal(t, selection.AssumedCached, third.Cache)
	third.Done(start, Refused)
	assert.Equal(t, selection.NotCached, claim().Cache, "it may have restarted")
}

// A prefetch makes its project count as cached. The first job that finds the data within a minute is marked as prefetched.
func TestPrefetch(t *testing.T) {
	prefetch, job := Request{Project: 7, Priority: selection.High, Prefetch: true}, Request{Project: 7}
	for name, c := range map[string]struct {
		between func(f *fixture, p *Assignment)
		after   time.Duration
		want    []bool // of two jobs
	}{
		"used once":              {func(_ *fixture, p *Assignment) { answer(p, start) }, time.Minute, []bool{true, false}},
		"used while it loads":    {nil, time.Second, []bool{true, false}},
		"too late":               {func(_ *fixture, p *Assignment) { answer(p, start) }, time.Minute + 1, []bool{false, false}},
		"it failed":              {func(_ *fixture, p *Assignment) { p.Done(start, NoAnswer) }, time.Second, []bool{false, false}},
		"the upstream could not": {func(_ *fixture, p *Assignment) { p.Answered(start, false, nil) }, time.Second, []bool{false, false}},
		"evicted": {func(f *fixture, p *Assignment) {
			answer(p, start)
			f.Report(start.Add(30*time.Second), p.Address, report(start.Add(30*time.Second), 0, 0))
		}, 31 * time.Second, []bool{false, false}},
		"the data was there before": {nil, 0, []bool{false, false}},
	} {
		f := newFixture(t, "least-in-flight", 1)
		if name == "the data was there before" {
			answer(f.must(start, job, nil), start)
		}
		p := f.must(start, prefetch, nil)
		assert.Zero(t, p.Expected, name)
		if c.between != nil {
			c.between(f, p)
		}
		var used []bool
		for range 2 {
			used = append(used, f.must(start.Add(c.after), job, nil).Prefetched)
		}
		assert.Equal(t, c.want, used, name)
	}
}

// A prefetch goes to no upstream while all are busy, and its duration is not learned.
func TestAPrefetchNeedsAFreeCore(t *testing.T) {
	f := newFixture(t, "expected", 2)
	now := start
	busy := func(i int, running, stalled float64) {
		now = now.Add(time.Millisecond)
		f.Report(now, upstreams(2)[i].Address, report(now, running, stalled))
	}
	prefetch := Request{Project: 7, Priority: selection.High, Prefetch: true}
	busy(0, 40, 24)
	busy(1, 40, 24)
	_, err := f.Claim(now, prefetch, nil)
	require.ErrorIs(t, err, ErrBusy)
	require.ErrorIs(t, err, ErrNoneEligible)
	busy(1, 3, 0)
	learned := func() []any {
		return []any{f.lengths, f.firstBytes, *f.fetches, f.members[upstreams(2)[1].Address].latency}
	}
	before := learned()
	a := f.must(now, prefetch, nil)
	a.Answered(now.Add(time.Hour), true, &Hint{At: now.Add(time.Hour), Known: true, Waited: 0, Fetched: time.Hour})
	a.Done(now.Add(2*time.Hour), Answered)
	assert.Equal(t, before, learned())
}

// The fetch time is the delay of the first byte, whatever fetch time the upstream reports.
func TestFetchTimeIsTheResponsesDelay(t *testing.T) {
	learned := func(ttfb, fetched time.Duration) float64 {
		f := newFixture(t, "random", 1)
		f.Report(start, upstreams(1)[0].Address, report(start, 10, 4))
		l := f.must(start.Add(time.Second), Request{Project: 9}, nil)
		now := start.Add(time.Second + ttfb)
		l.Answered(now, true, &Hint{At: now, Known: true, Waited: 0, Fetched: fetched})
		return f.fetchOf(9)
	}
	before := newFixture(t, "random", 1).fetchOf(9)
	assert.Greater(t, learned(time.Minute, -1), before)
	assert.Equal(t, learned(time.Minute, -1), learned(time.Minute, time.Hour))
	assert.Less(t, learned(time.Millisecond, time.Hour), before)
}

// The runner-up of a claim is the upstream that would be picked without the chosen one.
func TestTheRunnerUp(t *testing.T) {
	f, us := newFixture(t, "expected", 3), upstreams(3)
	f.Report(start, us[1].Address, report(start, 1, 0, 42))
	f.Report(start, us[2].Address, report(start, 1, 8))
	ranking, err := f.Explain(start, Request{Project: 42})
	require.NoError(t, err)
	assert.Zero(t, f.InFlight(), "to explain is to claim nothing")
	assert.True(t, ranking[0].Picked)
	assert.Equal(t, "cached", ranking[0].Cache)
	assert.Greater(t, ranking[1].Cost.Fetch, ranking[0].Cost.Fetch)
	a := f.must(start, Request{Project: 42}, nil)
	assert.Equal(t, []string{us[1].Address, us[1].Address}, []string{ranking[0].Address, a.Address})
	assert.Equal(t, ranking[1].Address, a.RunnerUp)
	assert.Equal(t, ranking[1].Cost.Total, a.RunnerUpCost)
	assert.Greater(t, a.RunnerUpCost, a.Cost.Total)
	a.Done(start, Answered)

	alone := f.must(start, Request{Project: 42}, []string{us[0].Address, us[1].Address})
	assert.Empty(t, alone.RunnerUp, "there is no other upstream")
	alone.Done(start, Answered)
}

// A job that a proxy retried at a fallback is counted there. Its times are unknown, so none are learned.
func TestMove(t *testing.T) {
	f := newFixture(t, "least-in-flight", 2)
	a := f.must(start, Request{Project: 7, Fallbacks: 1}, nil)
	from, to := a.Address, a.Fallbacks[0]
	b := a.Move(start.Add(time.Minute), to)
	require.NotNil(t, b)
	assert.Equal(t, 1, f.InFlight())
	b.Answered(start.Add(2*time.Minute), true, &Hint{At: start, Known: true})
	for _, s := range f.States(start) {
		assert.Zero(t, s.Latency)
		assert.Equal(t, s.Address == to, s.InFlight == 1)
		assert.Equal(t, s.Address == to, s.Assumed == 1)
	}
	assert.InDelta(t, unsizedPrior, f.fetchOf(7), 1e-9)
	b.Done(start, Answered)
	assert.Zero(t, f.InFlight())

	c := f.must(start, Request{}, nil)
	assert.Nil(t, c.Move(start, "10.9.9.9:9000"), "not an upstream of this pool")
	assert.Zero(t, f.InFlight())
	f.Set(start, slices.DeleteFunc(upstreams(2), func(u Upstream) bool { return u.Address != from }))
	assert.LessOrEqual(t, f.failuresToOpen(start, from), 4, "the move was a failure")
}

// failuresToOpen lets jobs fail at an upstream until its breaker opens, and returns how many failed.
func (f *fixture) failuresToOpen(now time.Time, address string) (n int) {
	for f.state(now, address).Breaker.State == health.Closed {
		f.must(now, Request{Among: places([]string{address})}, nil).Done(now, Refused)
		n++
	}
	return n
}

// The size in a job takes precedence over that of a listing, for this job and later ones.
func TestJobsTellTheSizeOfTheData(t *testing.T) {
	f, us := newFixture(t, "expected", 2), upstreams(2)
	r := report(start, 0, 0)
	r.Cached = sized{7: 1e6}
	f.Report(start, us[0].Address, r)
	claim := func(project uint64, bytes float64) {
		f.must(start, Request{Project: project, Bytes: bytes}, nil).Cancel(start)
	}
	perByte := func(bytes float64) float64 { return startupPrior + perBytePrior*bytes }
	claim(7, 0)
	assert.InDelta(t, perByte(1e6), f.fetchOf(7), 1e-9, "by the listing")
	r.At, r.Cached = start.Add(time.Second), sized{7: 2e6}
	f.Report(r.At, us[0].Address, r)
	claim(7, 0)
	assert.InDelta(t, perByte(2e6), f.fetchOf(7), 1e-9, "the last listing does")
	claim(7, 1e9)
	assert.InDelta(t, perByte(1e9), f.fetchOf(7), 1e-9, "by the job")
	claim(7, 0)
	assert.InDelta(t, perByte(1e9), f.fetchOf(7), 1e-9, "by an earlier job")
	unknown := f.fetchOf(8)
	for _, nonsense := range []float64{-1, math.NaN(), math.Inf(1), 1e16} {
		claim(8, nonsense)
		assert.InDelta(t, unknown, f.fetchOf(8), 0)
	}
	claim(0, 1e9)
	assert.Zero(t, f.projects.find(0).reportedBytes, "a job without a project has no data")
}

// sized is a listing with the sizes of projects.
type sized map[uint64]float64

func (s sized) Contains(project uint64) bool { _, ok := s[project]; return ok }
func (s sized) Bytes(project uint64) float64 { return s[project] }
func (s sized) Len() int                     { return len(s) }

// fetchOf is the expected fetch time of a project's data.
func (f *fixture) fetchOf(project uint64) float64 {
	return f.fetches.expected(f.projects.find(project).size())
}

// A gate can refuse a job although the breaker was ready. Removing that candidate does not mix up the others.
func TestAfterARefusalTheRestIsAsItWas(t *testing.T) {
	f, us := newFixture(t, "expected", 4), upstreams(4)
	f.Listing(start, us[1].Address, sized{5: 1e9})
	f.Listing(start, us[3].Address, sized{5: 1e9})
	f.gates[1].full, f.gates[3].full = true, true
	a := f.must(start, Request{Project: 5}, nil)
	assert.Contains(t, []string{us[0].Address, us[2].Address}, a.Address)
	assert.Equal(t, selection.NotCached, a.Cache)
	f.gates[3].full = false
	a = f.must(start, Request{Project: 5}, nil)
	assert.Equal(t, us[3].Address, a.Address)
	assert.Equal(t, selection.Cached, a.Cache)
}

// Projects with open jobs are never forgotten.
func TestStatesOfProjectsAreBounded(t *testing.T) {
	p := newProjectStates(100)
	p.state(5, true).open = 1
	p.state(8, true).reportedBytes = 1
	for id := range uint64(1000) {
		p.state(1000+id, true)
	}
	assert.Equal(t, 1, p.find(5).open)
	assert.Zero(t, p.find(8).reportedBytes)
}
