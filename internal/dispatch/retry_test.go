package dispatch

import (
	"cmp"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// The end of an attempt decides whether there is a retry.
func TestRetryRules(t *testing.T) {
	refused := Failure{Outcome: pool.Refused}
	cut := Failure{Outcome: pool.Refused, Progress: Begun}
	silent := Failure{Outcome: pool.NoAnswer, Progress: Begun}
	late := Failure{Outcome: pool.TimedOut, Progress: Begun}
	lateDial := Failure{Outcome: pool.TimedOut}
	busy := Failure{Outcome: pool.NotStarted, Progress: Responded}
	halfHead := Failure{Outcome: pool.Truncated, Progress: Responded}
	lateHead := Failure{Outcome: pool.TimedOut, Progress: Responded}
	gone := Failure{Outcome: pool.Gone}
	unwanted := Failure{Outcome: pool.Failed, Progress: Responded}
	for name, c := range map[string]struct {
		failures                  []Failure
		attempts, most, upstreams int // attempts made, and the maximum of those that count
	}{
		"no connection: always, and it does not count":    {[]Failure{refused, refused, refused, refused, refused, refused}, 7, 4, 9},
		"a refusal for load: always":                      {[]Failure{busy, busy, busy, busy}, 4, 4, 9},
		"a status in retry.on: always":                    {[]Failure{unwanted, unwanted, silent, unwanted}, 4, 4, 9},
		"too late before anything was sent: always":       {[]Failure{lateDial, lateDial, lateDial, lateDial}, 4, 4, 9},
		"lost while it was sent: once":                    {[]Failure{cut, cut}, 2, 4, 9},
		"no response to the whole job: once":              {[]Failure{silent, silent}, 2, 4, 9},
		"too late: once":                                  {[]Failure{late, late}, 2, 4, 9},
		"once is once for all of these together":          {[]Failure{cut, silent}, 2, 4, 9},
		"what no upstream can have begun does not use it": {[]Failure{refused, silent, busy, silent}, 4, 4, 9},
		"and may follow it":                               {[]Failure{silent, refused, busy, refused, busy, lateDial}, 6, 4, 9},
		"a part of a response head: never":                {[]Failure{halfHead}, 1, 4, 9},
		"too late, within the head: never":                {[]Failure{lateHead}, 1, 4, 9},
		"the submitter is gone: never":                    {[]Failure{gone}, 1, 4, 9},
		"one attempt: none after a refused connection":    {[]Failure{refused}, 1, 1, 9},
		"one attempt: none after a refusal for load":      {[]Failure{busy}, 1, 1, 9},
		"one that had a response does not wait":           {[]Failure{busy, refused}, 2, 4, 2},
		"nor one that an upstream may have begun":         {[]Failure{silent, refused}, 2, 4, 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, c.upstreams, func(cfg *Config) { cfg.Retry.Attempts = c.most })
			j := f.Begin(Request{})
			been := map[string]bool{}
			for i, failure := range c.failures {
				g := f.claim(start, j)
				require.False(t, been[g.Assignment.Address], "each goes to another upstream")
				been[g.Assignment.Address] = true
				next := f.fail(start, g, failure)
				require.Equal(t, i+1 < c.attempts, next.Again, "after attempt %d", i+1)
				require.False(t, next.OverBudget)
			}
		})
	}
}

// A prefetch neither waits nor is retried, and does not count in the retry budget.
func TestAPrefetchHasOneAttempt(t *testing.T) {
	f := newFixture(t, 2, nil)
	for _, failure := range []Failure{{Outcome: pool.Refused}, {Outcome: pool.NotStarted, Progress: Responded}, {Outcome: pool.Refused, Stale: true, Blameless: true}} {
		assert.Equal(t, Next{}, f.fail(start, f.claim(start, f.Begin(Request{Prefetch: true})), failure))
	}
	f.load(start, 0, 1000)
	f.load(start, 1, 1000)
	prefetch := Request{Prefetch: true, Priority: selection.High}
	require.ErrorIs(t, f.denied(start, prefetch), pool.ErrBusy, "none is eligible")
	f.wait(start, Request{Priority: selection.High})
	f.Pool().Set(start, []pool.Upstream{{Address: address(2)}})
	require.ErrorIs(t, f.denied(start, prefetch), pool.ErrBusy, "a job waits")
	assert.Equal(t, 1, f.Waiting())
}

func TestABodyThatIsNotKeptIsSentOnce(t *testing.T) {
	f := newFixture(t, 2, nil)
	j := f.Begin(Request{})
	f.claim(start, j).Assignment.Done(start, pool.Refused)
	assert.Equal(t, Next{}, f.Failed(start, j, Failure{Outcome: pool.Refused}))
}

func TestNoRetryAfterTheDeadline(t *testing.T) {
	for after, want := range map[time.Duration]bool{17*time.Second + 999*time.Millisecond: true, 18 * time.Second: false} {
		f := newFixture(t, 2, nil)
		j := f.Begin(Request{Arrived: start, Queue: 5 * time.Second, Evaluate: 10 * time.Second, Stream: 3 * time.Second})
		g := f.claim(start, j)
		assert.Equal(t, want, f.fail(start.Add(after), g, Failure{Outcome: pool.NotStarted}).Again)
	}
}

// The connect timeout doubles with each timeout, up to half of the remaining queue time. After all upstreams have timed out,
// they are tried again with the first timeout. A job whose queue timeout has passed is retried, but that counts as an attempt,
// as after any other failure.
func TestConnectTimeouts(t *testing.T) {
	type attempt struct {
		given time.Duration
		late  bool
	}
	const second = time.Second
	for name, c := range map[string]struct {
		upstreams int
		queue     time.Duration
		attempts  []attempt
		over      bool // no attempt follows the last
	}{
		"it doubles": {9, time.Minute, []attempt{
			{second, true}, {2 * second, false}, {2 * second, true}, {4 * second, true}, {8 * second, true}, {16 * second, true},
			{14500 * time.Millisecond, true},
		}, false},
		"all are tried again": {2, time.Minute, []attempt{{second, true}, {2 * second, true}, {second, true}, {2 * second, true}}, false},
		"its time is over":    {9, second / 2, []attempt{{second, true}, {second, true}, {second, true}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, c.upstreams, nil)
			now, j := start, f.Begin(Request{Queue: c.queue, Arrived: start})
			for i, a := range c.attempts {
				g := f.claim(now, j)
				assert.Equal(t, a.given, g.ConnectTimeout)
				next := f.fail(now, g, Failure{Outcome: pool.Refused, ConnectTimedOut: a.late})
				require.Equal(t, !c.over || i+1 < len(c.attempts), next.Again)
				now = now.Add(time.Second + next.Pause) // for the retry budget
			}
		})
	}
}

// The first retry has no pause. The pauses of later ones are drawn from an interval that doubles (full jitter).
func TestPauses(t *testing.T) {
	f := newFixture(t, 1, nil)
	require.Zero(t, f.pause(1))
	for i, most := range []time.Duration{25, 50, 100, 200, 250, 250, 250} {
		requireFullJitter(t, most*time.Millisecond, func() time.Duration { return f.pause(i + 2) })
	}
	assert.LessOrEqual(t, f.pause(1_000_000), maxPause)
}

// requireFullJitter draws often enough that some pauses are near both ends of the interval.
func requireFullJitter(t *testing.T, most time.Duration, draw func() time.Duration) {
	t.Helper()
	least, largest := time.Hour, time.Duration(0)
	for range 2000 {
		d := draw()
		least, largest = min(least, d), max(largest, d)
	}
	assert.LessOrEqual(t, largest, most)
	assert.Greater(t, largest, most*99/100)
	assert.GreaterOrEqual(t, least, time.Duration(0))
	assert.Less(t, least, most/100)
}

// The pauses before all upstreams are tried again grow.
func TestPausesBeforeAllAreTriedAgain(t *testing.T) {
	f := newFixture(t, 1, nil)
	j := f.Begin(Request{Queue: time.Hour})
	for i, most := range []time.Duration{25, 50, 100, 200, 400, 800, 800, 800} {
		requireFullJitter(t, most*time.Millisecond, func() time.Duration {
			j.tried, j.wait.total, j.retries.rounds = *pool.NewAddressSet([]string{address(0)}), 0, i
			next := f.refused(start, j, Failure{ConnectTimedOut: true})
			require.Equal(t, []any{true, i + 1, next.Pause}, []any{next.Again, j.retries.rounds, j.wait.total})
			return next.Pause
		})
	}
}

// After a stale pooled connection, its upstream is tried once more if no other is left.
func TestAfterAStaleConnection(t *testing.T) {
	stale := Failure{Outcome: pool.NoAnswer, Progress: Begun, Stale: true}
	f := newFixture(t, 1, nil)
	j := f.Begin(Request{})
	g := f.claim(start, j)
	assert.False(t, g.Fresh)
	require.True(t, f.fail(start, g, stale).Again)
	g = f.claim(start, j)
	assert.True(t, g.Fresh, "on a connection of its own")
	assert.Equal(t, address(0), g.Assignment.Address)
	assert.False(t, f.fail(start, g, stale).Again, "the job may be the reason")

	f = newFixture(t, 1, nil)
	j = f.Begin(Request{})
	unsent := Failure{Outcome: pool.Refused, Stale: true}
	require.Equal(t, Next{Again: true}, f.fail(start, f.claim(start, j), unsent), "at once: a new connection may be taken")
	assert.True(t, f.claim(start, j).Fresh)

	f = newFixture(t, 2, nil)
	for range budgetFloor + 1 {
		f.budget.take(start, 1)
	}
	j = f.Begin(Request{})
	require.True(t, f.fail(start, f.claim(start, j), Failure{Outcome: pool.NoAnswer, Progress: Begun}).OverBudget)
	j = f.Begin(Request{})
	require.Equal(t, Next{Again: true}, f.fail(start, f.claim(start, j), Failure{Outcome: pool.NoAnswer, Progress: Begun, Stale: true, Blameless: true}), "it costs no budget")

	f = newFixture(t, 2, nil)
	j = f.Begin(Request{})
	first := f.claim(start, j)
	require.True(t, f.fail(start, first, stale).Again)
	assert.Equal(t, []any{1, true}, []any{f.tried(start, j).Len(), f.tried(start, j).Has(first.Assignment.Address)})
	g = f.claim(start, j)
	assert.True(t, g.Fresh, "others of the pool may be as dead")
	assert.NotEqual(t, first.Assignment.Address, g.Assignment.Address, "another is left")
	j.attempt.stale = true
	assert.Equal(t, []any{1, true}, []any{f.tried(start, j).Len(), f.tried(start, j).Has(first.Assignment.Address)}, "only the last one is asked once more")
}

// A lone upstream that is down for less than the queue timeout of the jobs loses none of them.
func TestJobsWaitForALoneUpstream(t *testing.T) {
	f := newFixture(t, 1, nil)
	for n := range 200 {
		own := []time.Duration{0, 3 * time.Second}[n%2]
		want := cmp.Or(own, 10*time.Second)
		came := start.Add(time.Duration(n) * time.Hour)
		now, j := came, f.Begin(Request{Queue: own, Arrived: came})
		next := f.fail(now, f.claim(now, j), Failure{Outcome: pool.Refused})
		for next.Again {
			require.LessOrEqual(t, next.Pause, time.Second)
			now = now.Add(next.Pause)
			next = f.fail(now, f.claim(now, j), Failure{Outcome: pool.Refused})
		}
		require.LessOrEqual(t, now.Sub(came), want)
		require.Greater(t, now.Sub(came), want-time.Second)
	}
}

// Settings that a file cannot have. internal/config tests the others.
func TestInvalidSettings(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"dispatch: Pool and Rand are required":                     func(c *Config) { c.Pool = nil },
		"dispatch: retry.connect_timeout: 0s must be positive":     func(c *Config) { c.Retry.ConnectTimeout = 0 },
		"dispatch: queue.bytes: 0 must be at least 1":              func(c *Config) { c.Queue.Bytes = 0 },
		"dispatch: projects.limit: -1 is not between 0 and 100000": func(c *Config) { c.Projects.Limit = -1 },
	} {
		cfg := Config{Pool: newFixture(t, 1, nil).Pool(), Rand: rand.New(rand.NewPCG(1, 1)), Retry: DefaultRetry(), Queue: DefaultQueue()}
		change(&cfg)
		_, err := New(cfg)
		assert.EqualError(t, err, want)
	}
}

// The retry budget agrees with a list of all jobs and retries.
func TestRetryBudgetAgainstANaiveOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		b, share := budget{}, []float64{0.2, 0.5, 1}[rng.IntN(3)]
		var jobs, retries []int64 // the second of each
		since := func(seconds []int64, first int64) (n int) {
			for _, s := range seconds {
				if s >= first {
					n++
				}
			}
			return n
		}
		now := time.Unix(1_000_000+rng.Int64N(100), 0)
		for range 2000 {
			now = now.Add(time.Duration(rng.ExpFloat64() * float64(20*time.Millisecond)))
			if rng.IntN(500) == 0 {
				now = now.Add(time.Duration(rng.IntN(30)) * time.Second)
			}
			second := now.Unix()
			if rng.IntN(3) > 0 {
				b.job(now)
				jobs = append(jobs, second)
				continue
			}
			first := second - 10 + 1
			want := since(retries, second) < 3 ||
				float64(since(retries, first)+1) <= share*float64(since(jobs, first))
			require.Equal(t, want, b.take(now, share))
			if want {
				retries = append(retries, second)
			}
		}
	}
}

func TestRetryBudgetOfAClockThatGoesBack(t *testing.T) {
	b := budget{}
	now := time.Unix(1_000_000, 0)
	for range budgetFloor {
		require.True(t, b.take(now, 0.2))
	}
	require.False(t, b.take(now.Add(-time.Hour), 0.2), "the past is counted as the present")
	require.True(t, b.take(now.Add(time.Second), 0.2))
}

// In a total outage the retries are a share of the jobs.
func TestRetryBudgetUnderTotalOutage(t *testing.T) {
	f := newFixture(t, 4, func(c *Config) { c.Retry.Budget = 0.2 })
	rng := rand.New(rand.NewPCG(5, 5))
	now, jobs, attempts, over, paused := start, 10_000, 0, 0, time.Duration(0)
	for range jobs {
		now = now.Add(time.Duration(rng.ExpFloat64() * float64(10*time.Millisecond)))
		j := f.Begin(Request{})
		for again := true; again; attempts++ {
			g, granted := f.Arrive(now, j)
			require.True(t, granted)
			require.NoError(t, g.Err)
			next := f.fail(now, g, Failure{Outcome: pool.NotStarted, Progress: Responded})
			paused += next.Pause
			if again = next.Again; next.OverBudget {
				over++
			}
		}
	}
	assert.InEpsilon(t, 1.2*float64(jobs), attempts, 0.02)
	assert.Greater(t, over, jobs/2)
	assert.Positive(t, paused, "before third attempts")
}

func TestBoundsOfAJob(t *testing.T) {
	for _, c := range []struct {
		queue, evaluate, stream time.Duration
		firstByte, total        time.Duration // total 0 is no deadline
	}{
		{0, 0, 0, 300, 0},
		{5, 10, 0, 15, 15},
		{5, 10, 60, 15, 75},
		{0, 10, 0, 10, 10},
		{5, 0, 0, 305, 305},
		{0, 0, 60, 300, 360},
	} {
		f := newFixture(t, 1, nil)
		j := f.Begin(Request{
			Arrived: start, Queue: c.queue * time.Second, Evaluate: c.evaluate * time.Second, Stream: c.stream * time.Second,
		})
		deadline := start.Add(c.total * time.Second)
		if c.total == 0 {
			deadline = time.Time{}
		}
		assert.Equal(t, []any{c.firstByte * time.Second, deadline}, []any{j.FirstByte, j.Deadline}, "%+v", c)
	}
}

// An attempt has the job's first-byte timeout, or the time until the deadline if that is shorter. Less than half of the
// timeout does not count against the upstream.
func TestTimeOfAnAttempt(t *testing.T) {
	f := newFixture(t, 1, nil)
	j := f.Begin(Request{Arrived: start, Queue: 4 * time.Second, Evaluate: 6 * time.Second, Stream: 10 * time.Second})
	for _, c := range []struct {
		at, left time.Duration
		last     bool
		outcome  pool.Outcome
	}{
		{0, 10, false, pool.TimedOut}, {10, 10, false, pool.TimedOut}, {12, 8, true, pool.TimedOut},
		{15, 5, true, pool.TimedOut}, {16, 4, true, pool.Gone}, {21, -1, true, pool.Gone},
	} {
		left, last := j.TimeLeft(start.Add(c.at * time.Second))
		assert.Equal(t, c.left*time.Second, left)
		assert.Equal(t, c.last, last)
		assert.Equal(t, c.outcome, j.TimedOut(left))
	}
	left, last := f.Begin(Request{Arrived: start}).TimeLeft(start.Add(time.Hour))
	assert.Equal(t, 5*time.Minute, left)
	assert.False(t, last, "a job without timeouts has no deadline")
}
