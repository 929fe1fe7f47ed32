package pool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/health"
)

func TestStatesSayWhatIsKnown(t *testing.T) {
	f, us := newFixture(t, "random", 5), upstreams(5)
	us[1].Draining = true
	f.Set(start, us)
	require.Equal(t, 5, f.failuresToOpen(start, us[2].Address))
	f.Report(start, us[0].Address, report(start, 3, 2, 7, 8))
	f.Report(start, us[3].Address, report(start, 16, 500))
	tried := []string{us[0].Address, us[1].Address, us[2].Address, us[3].Address}
	f.must(start, Request{Project: 7}, tried).Done(start, NotStarted)
	require.Equal(t, us[4].Address, f.must(start, Request{Project: 7}, tried).Address, "no other upstream is left")

	now := start.Add(500 * time.Millisecond)
	states := f.States(now)
	why := map[string]string{}
	for _, s := range states {
		assert.Equal(t, s.Why == "", s.Eligible)
		why[s.Address] = s.Why
	}
	assert.Equal(t, map[string]string{
		us[0].Address: "", us[1].Address: "draining", us[2].Address: "breaker opened: 5 refused or lost connections in a row",
		us[3].Address: "overloaded", us[4].Address: "refused for load",
	}, why)
	assert.Equal(t, []float64{5, 3, 2, 0.5, 1}, []float64{
		states[0].Jobs, states[0].Running, states[0].Stalled, states[0].ReportAge, states[0].Level,
	})
	assert.Equal(t, 2, states[0].Cached)
	assert.True(t, states[0].ReportFresh)
	assert.False(t, f.States(now.Add(time.Minute))[0].ReportFresh)
	last := states[4]
	assert.Equal(t, []float64{1, -1}, []float64{last.Jobs, last.ReportAge})
	assert.Equal(t, []int{1, 1}, []int{last.InFlight, last.Assumed})
	assert.Equal(t, map[uint64][]string{7: {us[0].Address, us[4].Address}, 8: {us[0].Address}}, f.Holders(now, []uint64{7, 8, 9}))
}

// The status says why an upstream is not eligible and what is odd about it, each once.
func TestStatus(t *testing.T) {
	for want, s := range map[string]State{
		"eligible": {},
		"eligible; suspect: no response; slow: 3 times":       {Suspect: "no response", Slow: "3 times"},
		"suspect: no response; implausible figures: 9 cores":  {Reason: Suspect, Why: "suspect: no response", Suspect: "no response", Implausible: "9 cores"},
		"down: connection refused since 2026-01-01 00:00 UTC": {Reason: Shut, Why: "down: connection refused since 2026-01-01 00:00 UTC", DownSince: start, Suspect: "no response"},
	} {
		assert.Equal(t, want, s.status())
	}
	assert.Equal(t, "drained by hand; slow: 3 times", (&State{Why: "drained by hand", Slow: "3 times"}).status())
}

func TestDrainByHand(t *testing.T) {
	f, us := newFixture(t, "random", 2), upstreams(2)
	require.True(t, f.Drain(us[0].Address, true))
	assert.False(t, f.Drain("nobody:1", true))
	for range 20 {
		assert.Equal(t, us[1].Address, f.must(start, Request{}, nil).Address)
	}
	assert.Equal(t, "drained by hand", f.States(start)[0].Why)
	f.Set(start, us)
	assert.True(t, f.States(start)[0].Drained, "discovery does not end it")

	require.True(t, f.Drain(us[1].Address, true))
	f.must(start, Request{}, nil)
	require.True(t, f.Drain(us[0].Address, false))
	assert.Equal(t, us[0].Address, f.must(start, Request{}, nil).Address)
	f.Set(start, us[:1])
	f.Set(start, us)
	assert.False(t, f.States(start)[1].Drained, "an upstream that left and came back is another one")
}

// The wait is the jobs without a core plus one, divided by the rate.
func TestHowLongAJobWouldWait(t *testing.T) {
	f, us := newFixture(t, "expected", 2), upstreams(2)
	at := start
	for n := range 3 { // 20 jobs that need a core, and 4 that wait for what these compute; the cores complete 8 a second
		at = start.Add(time.Duration(5*n) * time.Second)
		r := report(at, 20, 4)
		r.CoresBusy, r.Completed = 16, float64(40*n)
		f.Report(at, us[0].Address, r)
	}
	states := f.States(at)
	require.Positive(t, states[0].Rate)
	assert.InDelta(t, 5/states[0].Rate, states[0].Wait, 1e-9)
	assert.Zero(t, states[1].Wait, "a core is free")
	assert.Equal(t, -1.0, wait(16, 16, 0), "nobody knows")
}

// waiter is a job that can be moved.
type waiter struct {
	tried *AddressSet
	looks int // searches for another upstream
}

func (w *waiter) Tried() *AddressSet {
	w.looks++
	return w.tried
}

// goes claims the upstream at address for a job that can be moved.
func (f *fixture) goes(t *testing.T, now time.Time, address string) (*waiter, *Assignment) {
	t.Helper()
	w := &waiter{}
	a := f.must(now, Request{Among: places([]string{address}), Waiter: w}, nil)
	w.tried = places([]string{address})
	return w, a
}

// always lets every job move.
func always(Waiter) bool { return true }

// reconsider returns the moves of Reconsider.
func (f *fixture) reconsider(now time.Time, most int, may func(Waiter) bool) (moves []Move) {
	f.Reconsider(now, most, f.moves(may, &moves))
	return moves
}

// withdrawals returns the moves of Withdrawals.
func (f *fixture) withdrawals(now time.Time, may func(Waiter) bool) (moves []Move) {
	f.Withdrawals(now, f.moves(may, &moves))
	return moves
}

// moves collects moves. A job is moved once.
func (f *fixture) moves(may func(Waiter) bool, moves *[]Move) Moves {
	return Moves{
		May: func(w Waiter) bool { return !f.moved[w] && may(w) },
		Moved: func(m Move) {
			f.moved[m.Job] = true
			*moves = append(*moves, m)
		},
	}
}

func TestJobsLeaveASuspect(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fixture, now time.Time, sick *Assignment)
		may    func(Waiter) bool
		want   bool
	}{
		"one that waits": {nil, always, true},
		"one that only owes responses": {func(f *fixture, now time.Time, a *Assignment) {
			for f.Report(now, a.Address, report(now, 0, 0)); f.state(now, a.Address).Suspect == ""; {
				now = now.Add(11 * time.Second)
				f.goes(t, now, a.Address)
				f.serve(t, now, 100, a.Address)
			}
		}, always, false},
		"one whose response has begun":    {func(_ *fixture, now time.Time, a *Assignment) { a.Answered(now, true, nil) }, always, false},
		"one that has ended":              {func(_ *fixture, now time.Time, a *Assignment) { a.Done(now, Gone) }, always, false},
		"not while the others are as bad": {func(f *fixture, now time.Time, a *Assignment) { f.fail(now, a.Address) }, always, false},
		"one that may not":                {nil, func(Waiter) bool { return false }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, us, now := newFixture(t, "least-in-flight", 3), upstreams(3), start
			f.allIdle(now)
			w, a := f.goes(t, now, us[1].Address)
			require.Empty(t, f.reconsider(now, movesAtOnce, c.may), "nobody is suspect")
			if c.change != nil {
				c.change(f, now.Add(time.Second), a)
			}
			now = now.Add(6 * time.Second)
			if name != "one that only owes responses" {
				f.suspect(now, us[1].Address)
			}
			moves := f.reconsider(now, movesAtOnce, c.may)
			if !c.want {
				require.Empty(t, moves)
				return
			}
			require.Len(t, moves, 1)
			assert.Same(t, w, moves[0].Job)
			assert.NotEqual(t, us[1].Address, moves[0].To.Address)
			assert.Equal(t, 2, f.InFlight(), "it counts at both, until the old attempt has ended")
			f.ReportFailed(now, us[1].Address, errHung)
			require.Empty(t, f.reconsider(now, movesAtOnce, c.may), "it is moved once")
			a.Done(now, Moved)
			moves[0].To.Done(now, Answered)
			assert.Zero(t, f.InFlight())
			assert.Equal(t, 5, f.failuresToOpen(now, us[1].Address), "it speaks neither for nor against it")
			assert.Empty(t, f.reconsider(now, movesAtOnce, c.may), "no report arrived since")
		})
	}
}

// Jobs leave an upstream whose health checks get no response. One that refuses connections or is not ready may be shutting
// down: it finishes its jobs.
func TestJobsLeaveAnUpstreamWhoseHealthChecksHang(t *testing.T) {
	for name, c := range map[string]struct {
		checks    []error
		responded bool // between the checks
		moves     int
	}{
		"two without a response":              {[]error{errHung, errHung}, false, 1},
		"one without a response":              {[]error{errHung}, false, 0},
		"one passed in between":               {[]error{errHung, nil, errHung}, false, 0},
		"not ready":                           {[]error{errSilent, errSilent}, false, 0},
		"refused":                             {[]error{health.ErrRefused, health.ErrRefused}, false, 0},
		"a response to another job has begun": {[]error{errHung, errHung}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f, sick, now := newFixture(t, "least-in-flight", 2), upstreams(2)[0].Address, start
			w, _ := f.goes(t, now, sick)
			_, other := f.goes(t, now, sick)
			var moves []Move
			for i, why := range c.checks {
				now = now.Add(5 * time.Second)
				f.Checked(now, sick, why)
				moves = append(moves, f.reconsider(now, movesAtOnce, func(of Waiter) bool { return of == w })...)
				if c.responded && i == 0 {
					other.Answered(now.Add(time.Second), true, nil)
				}
			}
			require.Len(t, moves, c.moves)
			for _, m := range moves {
				assert.Equal(t, sick, m.From)
				assert.Equal(t, upstreams(2)[1].Address, m.To.Address)
			}
			assert.Empty(t, f.state(now, sick).Suspect, "its breaker says what is wrong")
		})
	}
}

// A call moves a bounded number of the jobs at a suspect, and searches no upstream for jobs that may not move.
func TestManyJobsLeaveASuspectInSteps(t *testing.T) {
	f, us, now := newFixture(t, "least-in-flight", 3), upstreams(3), start
	f.allIdle(now)
	var jobs []*waiter
	for range 3 * movesAtOnce {
		w, _ := f.goes(t, now, us[1].Address)
		jobs = append(jobs, w)
	}
	looks := func() (n int) {
		for _, w := range jobs {
			n += w.looks
		}
		return n
	}
	f.suspect(now, us[1].Address)
	assert.Empty(t, f.reconsider(now, 0, always))
	assert.Empty(t, f.reconsider(now, movesAtOnce, func(Waiter) bool { return false }))
	assert.Zero(t, looks())
	f.ReportFailed(now, us[1].Address, errHung)
	for i := range 3 {
		require.Len(t, f.reconsider(now, 1e6, always), movesAtOnce)
		require.Equal(t, (i+1)*movesAtOnce, looks())
	}
	assert.Empty(t, f.reconsider(now, 1e6, always))
}

// fail makes all upstreams except one suspect.
func (f *fixture) fail(now time.Time, but string) {
	for _, m := range f.set {
		if m.Address != but {
			f.suspect(now, m.Address)
		}
	}
}
