package pool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/health"
)

// A job or a poll that is refused makes the upstream not eligible at once, with the reason, until it is reached. The open
// time of its breaker ends earlier: then a job tries it, and it is not shown as eligible for that.
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

// A connection that took too long opens the breaker at once, unless the upstream gave a sign of life
// since the job was claimed.
func TestAConnectionThatTakesTooLong(t *testing.T) {
	second := start.Add(time.Second)
	for name, c := range map[string]struct {
		meanwhile func(f *fixture, other *Assignment)
		why       string
	}{
		"no sign of life": {func(*fixture, *Assignment) {}, "a connection timed out"},
		"another job was answered": {func(_ *fixture, other *Assignment) {
			other.Answered(start.Add(time.Millisecond), true, nil)
		}, ""},
		"it reported": {func(f *fixture, other *Assignment) {
			f.Report(second, other.Address, report(start.Add(time.Millisecond), 0, 0))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "least-in-flight", 1)
			_, open := f.claims(t, start, 2)
			c.meanwhile(f, open[1])
			open[0].Unreached(second)
			open[0].Done(second, Refused)
			open[1].Unreached(second)
			assert.Equal(t, c.why, f.States(second)[0].Breaker.Why)
			assert.LessOrEqual(t, f.States(second)[0].Breaker.Trips, 1, "it counts once")
		})
	}
}

// What is told of all jobs comes with reports; this sidecar's own failure is one of them.
func TestFailuresInReports(t *testing.T) {
	f, address := newFixture(t, "random", 1), upstreams(1)[0].Address
	f.must(start, Request{}, nil).Answered(start, false, nil)
	for i := range 2 {
		r := report(start.Add(time.Duration(i+1)), 0, 0)
		r.Completed, r.Failed = float64(i), float64(i)
		f.Report(r.At, address, r)
	}
	assert.Equal(t, "a job failed, and so did at least half of the jobs of all sidecars there", f.state(start, address).Breaker.Why)
}

// An upstream that keeps failing is not forgiven for registering again, for as long as open times
// grow; and those that come and go leave nothing behind.
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
