package pool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/pkg/selection"
)

// waiter is a job that may be moved; it has been to these upstreams.
type waiter struct{ tried []string }

func (w *waiter) Tried() []string { return w.tried }

// goes claims an upstream for a job that may be moved, the one at address.
func (f *fixture) goes(t *testing.T, now time.Time, address string, project uint64) (*waiter, *Assignment) {
	t.Helper()
	w := &waiter{}
	a, err := f.Claim(now, Request{Project: project, Among: []string{address}, Waiter: w}, nil)
	require.NoError(t, err)
	w.tried = []string{address}
	return w, a
}

// doubt is what tests reconsider by, unless they say otherwise.
func doubt() Doubt { return Doubt{Suspect: true, Late: 200 * time.Millisecond} }

// always lets every job go, and certain those that cannot have begun.
func always(Waiter, bool) bool         { return true }
func certain(_ Waiter, sure bool) bool { return sure }

func TestJobsLeaveASuspect(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fixture, now time.Time, sick *Assignment)
		may    func(Waiter, bool) bool
		want   bool
	}{
		"one that waits":                  {nil, always, true},
		"one that may have begun":         {nil, certain, false},
		"one that only owes answers":      {nil, always, false},
		"one that has begun":              {func(_ *fixture, _ time.Time, a *Assignment) { a.Begun() }, always, false},
		"one whose response has begun":    {func(_ *fixture, now time.Time, a *Assignment) { a.Answered(now, true, nil) }, always, false},
		"one that has ended":              {func(_ *fixture, now time.Time, a *Assignment) { a.Done(now, Gone) }, always, false},
		"not while the others are as bad": {func(f *fixture, now time.Time, a *Assignment) { f.fail(now, a.Address) }, always, false},
		"not without second thoughts":     {func(*fixture, time.Time, *Assignment) {}, func(Waiter, bool) bool { return false }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, us, now := newFixture(t, "least-in-flight", 3), upstreams(3), start
			for _, u := range us {
				f.Report(now, u.Address, report(now, 0, 0))
			}
			w, a := f.goes(t, now, us[1].Address, 0)
			require.Empty(t, f.Reconsider(now, doubt(), c.may), "nobody is suspect")
			if c.change != nil {
				c.change(f, now.Add(time.Second), a)
			}
			now = now.Add(6 * time.Second)
			f.ReportFailed(now, us[1].Address, errHung)
			f.member(us[1].Address).suspicion.suspect(now, "as every case has it")
			if name == "one that only owes answers" {
				f.member(us[1].Address).suspicion.failed = 0
			}
			moves := f.Reconsider(now, doubt(), c.may)
			if !c.want {
				require.Empty(t, moves)
				return
			}
			require.Len(t, moves, 1)
			assert.Same(t, w, moves[0].Job)
			assert.Equal(t, BySuspicion, moves[0].Reason)
			assert.NotEqual(t, us[1].Address, moves[0].To.Address)
			assert.Equal(t, 2, f.InFlight(), "it counts at both, until the old attempt has ended")
			a.Done(now, Moved)
			moves[0].To.Done(now, Answered)
			assert.Zero(t, f.InFlight())
			assert.Equal(t, []breaker.Verdict{breaker.Unknown}, f.gates[us[1].Address].verdicts, "it speaks neither for nor against it")
			assert.Empty(t, f.Reconsider(now, doubt(), c.may), "nothing was heard since")
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

// situation is a job that waits at an upstream that is full, while another has cores free.
type situation struct {
	f          *fixture
	a          *Assignment
	full, free string
	now        time.Time
	d          Doubt
}

// reports makes an upstream report now.
func (s *situation) reports(address string, running, stalled float64) {
	s.now = s.now.Add(time.Millisecond)
	s.f.Report(s.now, address, report(s.now, running, stalled))
}

// A job that waits at a crowded upstream goes to one that has just said that it has a
// free core.
func TestLateJobsGoToFreeCores(t *testing.T) {
	const project = 7
	for name, c := range map[string]struct {
		change func(s *situation)
		want   bool
	}{
		"that long":                               {func(*situation) {}, true},
		"not so long":                             {func(s *situation) { s.d.Late = time.Minute }, false},
		"never":                                   {func(s *situation) { s.d.Late = 0 }, false},
		"it has begun":                            {func(s *situation) { s.a.Begun() }, false},
		"its upstream does not tell":              {func(s *situation) { s.f.member(s.full).tellsBegun = false }, false},
		"nor need it":                             {func(s *situation) { s.f.member(s.full).tellsBegun, s.d.Blind = false, true }, true},
		"blind, but no joblet is stalled there":   {func(s *situation) { s.f.member(s.full).tellsBegun, s.d.Blind = false, true; s.reports(s.full, 3, 0) }, false},
		"no core is free elsewhere":               {func(s *situation) { s.reports(s.free, 16, 0) }, false},
		"a joblet is stalled elsewhere":           {func(s *situation) { s.reports(s.free, 3, 1) }, false},
		"the report of it is old":                 {func(s *situation) { s.now = s.now.Add(2 * time.Second) }, false},
		"it is suspect":                           {func(s *situation) { s.f.member(s.free).suspicion.suspect(s.now, "so") }, false},
		"its breaker is open":                     {func(s *situation) { s.f.gates[s.free].shut = true }, false},
		"the crowd has gone: it costs more to go": {func(s *situation) { s.reports(s.full, 4, 0) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, us := newFixture(t, "expected", 3), upstreams(3)
			s := &situation{f: f, full: us[0].Address, free: us[1].Address, now: start, d: doubt()}
			s.reports(s.full, 16, 60)
			s.reports(us[2].Address, 16, 30)
			_, s.a = f.goes(t, s.now, s.full, project)
			f.member(s.full).tellsBegun = true
			s.now = s.now.Add(time.Second)
			s.reports(s.full, 16, 61)
			s.reports(s.free, 3, 0)
			c.change(s)
			moves := f.Reconsider(s.now, s.d, always)
			if !c.want {
				require.Empty(t, moves)
				return
			}
			require.Len(t, moves, 1)
			assert.Equal(t, ByLateness, moves[0].Reason)
			assert.Equal(t, s.free, moves[0].To.Address)
		})
	}
}

// weighed notes the open jobs of the project in what a policy is asked for costs.
type weighed struct {
	selection.Coster
	open []float64
}

func (w *weighed) Costs(job selection.Job, views []selection.View, costs []selection.Cost) {
	w.open = append(w.open, job.Open)
	w.Coster.Costs(job, views, costs)
}

// A late job shares the price of a fetch with the project's other open jobs, not with itself.
func TestALateJobDoesNotCountItself(t *testing.T) {
	const project, others = 7, 3
	f, us, now := newFixture(t, "expected", 2), upstreams(2), start
	coster, ok := f.cfg.Policy.(selection.Coster)
	require.True(t, ok)
	costs := &weighed{Coster: coster}
	f.cfg.Policy = costs
	f.goes(t, now, us[0].Address, project)
	f.member(us[0].Address).tellsBegun = true
	for range others {
		_, err := f.Claim(now, Request{Project: project}, nil) // none of these can be moved
		require.NoError(t, err)
	}
	now = now.Add(time.Second)
	f.Report(now, us[0].Address, report(now, 16, 60))
	f.Report(now, us[1].Address, report(now, 0, 0))
	require.Len(t, f.Reconsider(now, doubt(), always), 1)
	assert.Equal(t, []float64{others}, costs.open)
}

// An upstream tells when jobs begin if its last response came after such a sign.
func TestUpstreamsThatTellOfBeginnings(t *testing.T) {
	f, address := newFixture(t, "random", 1), upstreams(1)[0].Address
	m := f.member(address)
	_, a := f.goes(t, start, address, 0)
	a.Begun()
	assert.True(t, m.tellsBegun)
	assert.False(t, a.waits)
	_, b := f.goes(t, start, address, 0)
	b.Answered(start, true, nil)
	assert.False(t, m.tellsBegun, "this one was not told")
	_, held := f.goes(t, start, address, 0)
	held.Hold()
	assert.False(t, held.waits)
	assert.False(t, m.tellsBegun, "something else came")
	_, c := f.goes(t, start, address, 0)
	c.Begun()
	_, d := f.goes(t, start, address, 0)
	d.Answered(start, false, nil)
	assert.True(t, m.tellsBegun, "a refusal has no beginning")
	c.Answered(start, true, nil)
	assert.True(t, m.tellsBegun, "the answer of one that it told of")
	for _, a := range []*Assignment{a, b, held, c, d} {
		a.Done(start, Answered)
	}
	m.tellsBegun = false
	a.Begun()
	assert.False(t, m.tellsBegun, "it is over")
}
