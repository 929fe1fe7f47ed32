package pool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/health"
)

// A refused connection of a job or poll makes the upstream down at once, until it is reached. After the open time of its
// breaker a job tries it, but it is still shown as down.
func TestDownIsDown(t *testing.T) {
	second := start.Add(time.Second)
	for name, refuse := range map[string]func(f *fixture, a *Assignment){
		"poll": func(f *fixture, a *Assignment) { f.Checked(second, a.Address, health.ErrRefused) },
		"job":  func(_ *fixture, a *Assignment) { a.ConnectionRefused(second) },
	} {
		f := newFixture(t, "random", 2)
		a := f.must(start, Request{}, nil)
		refuse(f, a)
		a.Done(second, Refused)
		for _, now := range []time.Time{second, second.Add(time.Hour)} {
			s := f.state(now, a.Address)
			assert.Equal(t, Shut, s.Reason, name)
			assert.Equal(t, "down: connection refused since 00:00", s.Status, name)
		}
		f.must(second.Add(time.Hour), Request{Among: places([]string{a.Address})}, nil)
		f.Report(second, a.Address, report(second, 0, 0))
		assert.True(t, f.state(second, a.Address).Eligible, name)
	}
}

// A connect timeout opens the breaker at once, unless the upstream has responded or reported since the claim.
func TestAConnectionThatTakesTooLong(t *testing.T) {
	second := start.Add(time.Second)
	for name, c := range map[string]struct {
		since func(f *fixture, other *Assignment)
		why   string
	}{
		"no sign of life": {func(*fixture, *Assignment) {}, "a connection timed out"},
		"a response to another job": {func(_ *fixture, other *Assignment) {
			other.Answered(start.Add(time.Millisecond), true, nil)
		}, ""},
		"it reported": {func(f *fixture, other *Assignment) {
			f.Report(second, other.Address, report(start.Add(time.Millisecond), 0, 0))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "least-in-flight", 1)
			_, open := f.claims(t, start, 2)
			c.since(f, open[1])
			open[0].Unreached(second)
			open[0].Done(second, Refused)
			open[1].Unreached(second)
			assert.Equal(t, c.why, f.States(second)[0].Breaker.Why)
			assert.LessOrEqual(t, f.States(second)[0].Breaker.Trips, 1, "it counts once")
		})
	}
}

// The counters of all sidecars' jobs arrive in reports, and include this sidecar's own failure.
func TestFailuresInReports(t *testing.T) {
	f, address := newFixture(t, "random", 1), upstreams(1)[0].Address
	f.must(start, Request{}, nil).Answered(start, false, nil)
	for i := range 2 {
		r := report(start.Add(time.Duration(i+1)), 0, 0)
		r.Completed, r.Failed = float64(i), float64(i)
		f.Report(r.At, address, r)
	}
	assert.Equal(t, "a job failed, and so did at least half of the jobs of all sidecars there", f.state(start, address).Breaker.Why)

	f = newFixture(t, "random", 1)
	for i := range 2 {
		for range 5 * i {
			f.must(start, Request{}, nil).Answered(start, false, nil)
		}
		r := report(start.Add(time.Duration(i+1)), 0, 0)
		r.Completed, r.Failed = float64(5*i), float64(5*i)
		f.Report(r.At, address, r)
	}
	assert.Equal(t, "5 responses of 500 or more in a row", f.state(start, address).Breaker.Why, "none of them is another sidecar's")
}

// The breaker of an upstream that leaves and joins again is remembered for the longest open time. After that nothing of an
// upstream that left is kept.
func TestBreakersOfUpstreamsThatLeave(t *testing.T) {
	f, us, now := newFixture(t, "random", 3), upstreams(3), start
	sick := us[1].Address
	for range 5 {
		a := f.must(now, Request{Among: places([]string{sick})}, nil)
		a.Done(now, Refused)
	}
	f.Set(now, us[:1])
	assert.Len(t, f.members, 2)
	now = now.Add(time.Minute - 1)
	f.Set(now, us[:1])
	f.Set(now, us)
	assert.Equal(t, 1, f.state(now, sick).Breaker.Trips)
	open := f.must(now, Request{Among: places([]string{us[0].Address})}, nil)
	f.Set(now, nil)
	now = now.Add(time.Minute)
	f.Set(now, nil)
	assert.Len(t, f.members, 1, "a job is open there")
	open.Done(now, Answered)
	assert.Empty(t, f.members)
}
