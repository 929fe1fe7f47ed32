package pool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/health"
)

// An upstream that reports free cores and no queue gets jobs that wait elsewhere: those whose data it has, or that wait longer than
// half of a fetch, which is expected to take 2 s. A core completes a job per second, and each upstream has 16.
func TestAnIdleUpstreamGetsWaitingJobs(t *testing.T) {
	for name, c := range map[string]struct {
		stalled float64 // at the busy upstream
		cached  bool    // at the idle one
		change  func(f *fixture, now time.Time, busy, idle string)
		may     func(Waiter) bool
		want    int // of 4 jobs
	}{
		"cached there":                 {stalled: 8, cached: true, want: 4},
		"not cached, a short wait":     {stalled: 8, want: 0},
		"not cached, a long wait":      {stalled: 40, want: 4},
		"nothing waits":                {stalled: 0, cached: true, want: 0},
		"a job that may not be moved":  {stalled: 40, may: func(Waiter) bool { return false }, want: 0},
		"the idle one has three cores": {stalled: 40, change: func(f *fixture, now time.Time, _, idle string) { f.Report(now, idle, report(now, 13, 0)) }, want: 3},
		"it is not idle":               {stalled: 40, change: func(f *fixture, now time.Time, _, idle string) { f.Report(now, idle, report(now, 12, 1)) }, want: 0},
		"it drains":                    {stalled: 40, change: func(f *fixture, _ time.Time, _, idle string) { f.Drain(idle, true) }, want: 0},
		"the busy one drains":          {stalled: 40, change: func(f *fixture, _ time.Time, busy, _ string) { f.Drain(busy, true) }, want: 4},
		"it has left":                  {stalled: 40, change: func(f *fixture, now time.Time, busy, _ string) { f.Set(now, []Upstream{{Address: busy}}) }, want: 0},
		"it is suspect":                {stalled: 40, change: func(f *fixture, now time.Time, _, idle string) { f.suspect(now, idle) }, want: 0},
		"upstreams do not withdraw":    {stalled: 40, change: func(f *fixture, _ time.Time, _, _ string) { f.reported = nil }, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "expected", 3)
			now, jobs, there := f.backlog(4, c.stalled, c.cached)
			busy, idle := f.set[1].Address, f.set[0].Address
			if now = now.Add(time.Millisecond); c.change != nil {
				c.change(f, now, busy, idle)
			}
			may := c.may
			if may == nil {
				may = always
			}
			moves := f.withdrawals(now, may)
			require.Len(t, moves, c.want)
			for i, m := range moves {
				assert.Same(t, jobs[len(jobs)-1-i], m.Job, "the latest first")
				assert.Equal(t, idle, m.To.Address)
			}
			assert.Empty(t, f.withdrawals(now, may), "nothing was reported since")
			for _, m := range moves { // the upstream refuses
				m.To.Cancel(now)
			}
			rest := f.withdrawals(now, may)
			assert.Len(t, rest, map[int]int{3: 1}[c.want], "each is asked for once")
			for _, m := range rest {
				m.To.Cancel(now)
			}
			for _, a := range there {
				a.Done(now, Answered)
			}
			assert.Zero(t, f.InFlight())
		})
	}
}

// backlog lets n jobs wait at the second of three upstreams with that many stalled joblets. The first is idle, and has their data
// if cached is set.
func (f *fixture) backlog(n int, stalled float64, cached bool) (now time.Time, jobs []*waiter, there []*Assignment) {
	now, f.cfg.Withdraw = start, true
	busy, idle := f.set[1].Address, f.set[0].Address
	for _, m := range f.set {
		r := report(now, 16, 1)
		r.Completed, r.CoresBusy = 0, 16
		f.Report(now, m.Address, r)
	}
	now = now.Add(5 * time.Second)
	for range n {
		w := &waiter{}
		there = append(there, f.must(now, Request{Project: 1, Among: places([]string{busy}), Waiter: w}, nil))
		w.tried = places([]string{busy})
		jobs = append(jobs, w)
	}
	now = now.Add(time.Second)
	for _, m := range f.set {
		r := report(now, 16, 1)
		switch r.Completed, r.CoresBusy = 96, 16; m.Address {
		case busy:
			r.Stalled[0] = stalled
		case idle:
			r.Stalled[0], r.Running[0] = 0, 4
			if cached {
				r.Cached = projects{1: true}
			}
		}
		f.Report(now, m.Address, r)
	}
	return now, jobs, there
}

// The work of a search is bounded, whatever the number of jobs that wait. The next one continues.
func TestASearchAmongManyWaitingJobs(t *testing.T) {
	f := newFixture(t, "expected", 3)
	now, jobs, _ := f.backlog(3000, 40, true)
	f.suspect(now, f.set[0].Address) // so that no job can go there
	for range 2 {
		looks := 0
		assert.Empty(t, f.withdrawals(now, always))
		for _, w := range jobs {
			looks += w.looks
			w.looks = 0
		}
		assert.Positive(t, looks)
		assert.LessOrEqual(t, looks, searchWork/claimWork)
		now = now.Add(withdrawPause)
	}
}

// Jobs that wait leave an upstream that drains, unless all do.
func TestWaitingJobsLeaveAnUpstreamThatStops(t *testing.T) {
	for name, c := range map[string]struct {
		stalled float64
		all     bool
		want    int
	}{"they wait": {3, false, 1}, "nothing waits": {0, false, 0}, "all drain": {3, true, 0}} {
		f, us, now := newFixture(t, "least-in-flight", 3), upstreams(3), start
		f.cfg.Withdraw = true
		w, a := f.goes(t, now, us[1].Address)
		for i, u := range us {
			f.Drain(u.Address, c.all || i == 1)
			f.Report(now, u.Address, report(now, 16, map[bool]float64{true: c.stalled, false: 1}[i == 1]))
		}
		moves := f.withdrawals(now, always)
		require.Len(t, moves, c.want, name)
		if c.want > 0 {
			assert.Same(t, w, moves[0].Job)
			assert.NotEqual(t, us[1].Address, moves[0].To.Address)
			moves[0].To.Cancel(now)
		}
		a.Done(now, Answered)
		assert.Zero(t, f.InFlight())
	}
}

// A job that only a half-open upstream would take stays, and the jobs after it still move. An upstream that has just refused a
// job for load takes them, although a half-open one would come first for a new job.
func TestJobsThatCannotMoveDoNotBlockOthers(t *testing.T) {
	for name, refused := range map[string]bool{"idle": false, "refused a job for load": true} {
		f, us, now := newFixture(t, "least-in-flight", 3), upstreams(3), start
		f.cfg.Withdraw = true
		leaving, halfOpen, healthy := us[0].Address, us[1].Address, us[2].Address
		stays, _ := f.goes(t, now, leaving)
		moves, _ := f.goes(t, now, leaving)
		stays.tried = places([]string{leaving, healthy})
		f.failuresToOpen(now, halfOpen)
		if now = now.Add(6 * time.Second); refused {
			f.must(now, Request{Among: places([]string{healthy})}, nil).Done(now, NotStarted)
		}
		require.Equal(t, health.HalfOpen, f.state(now, halfOpen).Breaker.State)
		f.Drain(leaving, true)
		f.Report(now, leaving, report(now, 16, 3))
		got := f.withdrawals(now, always)
		require.Len(t, got, 1, name)
		assert.Same(t, moves, got[0].Job, name)
		assert.Equal(t, healthy, got[0].To.Address, name)
	}
}
