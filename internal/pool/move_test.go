package pool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// waiter is a job that may be moved; it has been to these upstreams.
type waiter struct{ tried []string }

func (w *waiter) Tried() []string { return w.tried }

// goes claims an upstream for a job that may be moved, the one at address.
func (f *fixture) goes(t *testing.T, now time.Time, address string) (*waiter, *Assignment) {
	t.Helper()
	w := &waiter{}
	a, err := f.Claim(now, Request{Among: []string{address}, Waiter: w}, nil)
	require.NoError(t, err)
	w.tried = []string{address}
	return w, a
}

// always lets every job go.
func always(Waiter) bool { return true }

func TestJobsLeaveASuspect(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fixture, now time.Time, sick *Assignment)
		may    func(Waiter) bool
		want   bool
	}{
		"one that waits":                  {nil, always, true},
		"one that only owes answers":      {nil, always, false},
		"one whose response has begun":    {func(_ *fixture, now time.Time, a *Assignment) { a.Answered(now, true, nil) }, always, false},
		"one that has ended":              {func(_ *fixture, now time.Time, a *Assignment) { a.Done(now, Gone) }, always, false},
		"not while the others are as bad": {func(f *fixture, now time.Time, a *Assignment) { f.fail(now, a.Address) }, always, false},
		"one that may not":                {nil, func(Waiter) bool { return false }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, us, now := newFixture(t, "least-in-flight", 3), upstreams(3), start
			for _, u := range us {
				f.Report(now, u.Address, report(now, 0, 0))
			}
			w, a := f.goes(t, now, us[1].Address)
			require.Empty(t, f.Reconsider(now, c.may), "nobody is suspect")
			if c.change != nil {
				c.change(f, now.Add(time.Second), a)
			}
			now = now.Add(6 * time.Second)
			f.ReportFailed(now, us[1].Address, errHung)
			f.member(us[1].Address).suspicion.suspect(now, "as every case has it")
			if name == "one that only owes answers" {
				f.member(us[1].Address).suspicion.failed = 0
			}
			moves := f.Reconsider(now, c.may)
			if !c.want {
				require.Empty(t, moves)
				return
			}
			require.Len(t, moves, 1)
			assert.Same(t, w, moves[0].Job)
			assert.NotEqual(t, us[1].Address, moves[0].To.Address)
			assert.Equal(t, 2, f.InFlight(), "it counts at both, until the old attempt has ended")
			a.Done(now, Moved)
			moves[0].To.Done(now, Answered)
			assert.Zero(t, f.InFlight())
			assert.Zero(t, f.member(us[1].Address).health.row, "it speaks neither for nor against it")
			assert.Empty(t, f.Reconsider(now, c.may), "nothing was heard since")
		})
	}
}

func (f *fixture) member(address string) *member { return f.members[address] }

// fail makes all upstreams but one suspect.
func (f *fixture) fail(now time.Time, but string) {
	for _, m := range f.set {
		if m.Address != but {
			m.suspicion.suspect(now, "a test says so")
		}
	}
}
