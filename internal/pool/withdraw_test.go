package pool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
		"it has left":                  {stalled: 40, change: func(f *fixture, now time.Time, busy, _ string) { f.Set(now, []Upstream{{Address: busy}}) }, want: 0},
		"it is suspect":                {stalled: 40, change: func(f *fixture, now time.Time, _, idle string) { f.suspect(now, idle) }, want: 0},
		"upstreams do not withdraw":    {stalled: 40, change: func(f *fixture, _ time.Time, _, _ string) { f.reported = nil }, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			f, now := newFixture(t, "expected", 3), start
			f.cfg.Withdraw = true
			us := upstreams(3)
			busy, idle := us[1].Address, us[0].Address
			for _, u := range us {
				r := report(now, 16, 1)
				r.Completed, r.CoresBusy = 0, 16
				f.Report(now, u.Address, r)
			}
			now = now.Add(5 * time.Second)
			var jobs []*waiter
			var there []*Assignment
			for range 4 {
				w := &waiter{}
				there = append(there, f.must(now, Request{Project: 1, Among: places([]string{busy}), Waiter: w}, nil))
				w.tried = places([]string{busy})
				jobs = append(jobs, w)
			}
			now = now.Add(time.Second)
			for _, u := range us {
				r := report(now, 16, 1)
				switch r.Completed, r.CoresBusy = 96, 16; u.Address {
				case busy:
					r.Stalled[0] = c.stalled
				case idle:
					r.Stalled[0], r.Running[0] = 0, 4
					if c.cached {
						r.Cached = projects{1: true}
					}
				}
				f.Report(now, u.Address, r)
			}
			if now = now.Add(time.Millisecond); c.change != nil {
				c.change(f, now, busy, idle)
			}
			may := c.may
			if may == nil {
				may = always
			}
			moves := f.Withdrawals(now, may)
			require.Len(t, moves, c.want)
			for i, m := range moves {
				assert.Same(t, jobs[len(jobs)-1-i], m.Job, "the latest first")
				assert.Equal(t, idle, m.To.Address)
			}
			assert.Empty(t, f.Withdrawals(now, may), "nothing was reported since")
			for _, m := range moves { // the upstream refuses
				m.To.Cancel(now)
			}
			rest := f.Withdrawals(now, may)
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
		moves := f.Withdrawals(now, always)
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
