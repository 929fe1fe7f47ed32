package dispatch

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// A project has a limit of one job, and its jobs take 4 s each. After 8 s, two of its queued jobs got an upstream and four
// wait. One more job would wait 4 * 8 s / (2 + 1) = 11 s, which exceeds the queue timeout of 10 s. The limit does not affect
// another project.
func TestAJobBehindTooManyOfItsProjectIsRefusedAtOnce(t *testing.T) {
	f := newFixture(t, 2, bounded(ProjectSettings{Limit: 1}))
	now := start
	running := f.claim(now, f.Begin(Request{Project: 1}))
	var waiting []*Job
	for range 3 {
		waiting = append(waiting, f.wait(now, Request{Project: 1, Queue: time.Minute}))
	}
	for i := range 2 { // no grant was observed before, so no job is refused
		now = now.Add(4 * time.Second)
		running.Assignment.Done(now, pool.Answered)
		f.serve(now)
		running = f.granted[waiting[i]]
		require.NoError(t, running.Err)
	}
	for range 3 {
		f.wait(now, Request{Project: 1})
	}
	f.claim(now, f.Begin(Request{Project: 2}))

	assert.EqualError(t, f.denied(now, Request{Project: 1}), "the project has reached its limit of jobs in flight (1), and its 4 waiting jobs need about 11s")
}

// The estimated queue time is the number of jobs ahead divided by the rate of grants, with one grant more than observed.
// Only high-priority jobs are ahead of a high-priority one. Old grants lose their influence.
func TestBacklogEstimatesQueueTime(t *testing.T) {
	b := &backlog{since: start, granted: 3}
	b.waiting[selection.High], b.waiting[selection.Low] = 2, 6
	now := start.Add(8 * time.Second) // 3 + 1 grants in 8 s: one in 2 s
	assert.Equal(t, 4*time.Second, b.timeFor(now, selection.High))
	assert.Equal(t, 16*time.Second, b.timeFor(now, selection.Low))
	assert.Zero(t, b.timeFor(start, selection.Low), "no time has passed, so no rate is known")
	for range 10_000 { // now one a second
		now = now.Add(time.Second)
		b.grant(now)
	}
	assert.InDelta(t, 8, b.timeFor(now, selection.Low).Seconds(), 0.5, "the rate of 1 grant/s replaces the old one")
}

// A project's jobs are accepted as by a token bucket, and a refused job gets the time until the next token.
func TestJobsPerMinuteAgainstATokenBucket(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	for _, perMinute := range []int{1, 6, 60, 600} {
		r, tokens, last, now := rates{}, [5]float64{}, [5]time.Time{}, start
		for i := range tokens {
			tokens[i], last[i] = float64(perMinute), now
		}
		accepted, refused := 0, 0
		for range 20_000 {
			now = now.Add(time.Duration(rng.IntN(120_000/perMinute)) * time.Millisecond / 10)
			p := rng.IntN(5)
			tokens[p] = min(float64(perMinute), tokens[p]+now.Sub(last[p]).Minutes()*float64(perMinute))
			last[p] = now
			after := r.take(now, uint64(p), perMinute)
			if after == 0 {
				require.GreaterOrEqual(t, tokens[p], 1-1e-6, "%d jobs per minute: accepted without a token", perMinute)
				tokens[p]--
				accepted++
				continue
			}
			refused++
			require.InDelta(t, (1-tokens[p])*60/float64(perMinute), after.Seconds(), 1e-6, "%d jobs per minute: time until the next token", perMinute)
		}
		assert.Positive(t, accepted, "%d jobs per minute", perMinute)
		assert.Positive(t, refused, "%d jobs per minute", perMinute)
	}
}

func TestJobsPerMinuteKeepOnlyRecentProjects(t *testing.T) {
	r := rates{}
	for i := range 200_000 {
		r.take(start.Add(time.Duration(i)*10*time.Millisecond), uint64(i), 1) // 6,000 projects a minute
		require.LessOrEqual(t, len(r.young)+len(r.old), 2*6001+1)
	}
}

// A project that exceeds projects.per_minute gets ErrRate with the time until the next job is accepted. Retries do not
// count. Other projects, and jobs without one, are not limited.
func TestJobsAboveTheRateOfAProjectAreRefused(t *testing.T) {
	f := newFixture(t, 2, bounded(ProjectSettings{PerMinute: 2}))
	for range 2 {
		g := f.claim(start, f.Begin(Request{Project: 1}))
		f.fail(start, g, Failure{Outcome: pool.Refused})
		f.claim(start, g.Job) // a retry, which does not count
	}
	err := f.denied(start, Request{Project: 1})
	var later *LaterError
	require.ErrorAs(t, err, &later)
	assert.ErrorIs(t, err, ErrRate)
	assert.Equal(t, 30*time.Second, later.After)
	f.claim(start, f.Begin(Request{Project: 2}))
	f.claim(start, f.Begin(Request{}))
	f.claim(start.Add(later.After), f.Begin(Request{Project: 1}))
}
