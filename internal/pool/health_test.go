package pool

import (
	"errors"
	"fmt"
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
			assert.Equal(t, "down: connection refused since 2026-01-01 00:00 UTC", s.Status, name)
		}
		f.must(second.Add(time.Hour), Request{Among: places([]string{a.Address})}, nil)
		f.Report(second.Add(time.Second), a.Address, report(second.Add(-1), 0, 0))
		assert.False(t, f.state(second, a.Address).Eligible, "a report from before")
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

// A response has two results for the breaker: its start and its end.
func TestEndsOfResponses(t *testing.T) {
	type end struct {
		healthy bool // its status is below 500
		outcome Outcome
	}
	whole, broken, left := end{true, Answered}, end{true, Truncated}, end{true, Gone}
	for name, c := range map[string]struct {
		jobs []end
		want string
	}{
		"submitters disconnect in between": {[]end{broken, broken, left, broken, left, broken, broken}, "5 truncated responses in a row"},
		"one is complete":                  {[]end{broken, broken, broken, broken, whole, broken}, ""},
		"each has one failure":             {[]end{{false, Truncated}, {false, Truncated}, {false, Failed}, {false, Gone}}, ""},
		"failures, and one breaks off":     {[]end{{false, Failed}, {false, Failed}, {false, Failed}, {false, Failed}, broken, {false, Failed}}, ""},
	} {
		f := newFixture(t, "random", 1)
		for _, how := range c.jobs {
			a := f.must(start, Request{}, nil)
			a.Answered(start, how.healthy, nil)
			a.Done(start, how.outcome)
		}
		assert.Equal(t, c.want, f.States(start)[0].Breaker.Why, name)
	}
}

// The counters of all sidecars' jobs arrive in reports. They include this sidecar's own failures, which count once.
func TestFailuresInReports(t *testing.T) {
	fails := func(a *Assignment) { a.Answered(start, false, nil) }
	for name, c := range map[string]struct {
		failures float64 // of all sidecars between two reports
		own      []func(a *Assignment)
		want     string
	}{
		"one of its own": {1, []func(*Assignment){fails}, ""},
		"one of its own, and one of another sidecar": {2, []func(*Assignment){fails}, "a job failed, and so did at least half of the jobs of all sidecars there"},
		"five of its own":                       {5, []func(*Assignment){fails, fails, fails, fails, fails}, "5 responses of 500 or more in a row"},
		"a response that is retried (retry.on)": {1, []func(*Assignment){func(a *Assignment) { a.Done(start, Failed) }}, ""},
		"a response that breaks off": {1, []func(*Assignment){func(a *Assignment) {
			a.Answered(start, true, nil)
			a.Done(start, Truncated)
		}}, ""},
	} {
		f, address := newFixture(t, "random", 1), upstreams(1)[0].Address
		for i := range 2 {
			if i == 1 {
				for _, ends := range c.own {
					ends(f.must(start, Request{}, nil))
				}
			}
			r := report(start.Add(time.Duration(i+1)), 0, 0)
			r.Completed, r.Failed = float64(i)*c.failures, float64(i)*c.failures
			f.Report(r.At, address, r)
		}
		assert.Equal(t, c.want, f.state(start, address).Breaker.Why, name)
	}
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

// A breaker whose open time is longer than the longest one, because health checks fail, stays open if its upstream leaves and
// joins again, for at most maxOutside upstreams that left.
func TestAnOpenBreakerOutlastsItsUpstream(t *testing.T) {
	us, until := upstreams(2), start.Add(2*time.Hour)
	for name, c := range map[string]struct {
		others int // that leave later, with an open breaker
		now    time.Time
		want   health.State
	}{
		"before the open time ends": {0, until.Add(-1), health.Open},
		"after it":                  {0, until, health.Closed},
		"one of the last":           {maxOutside - 1, until.Add(-1), health.Open},
		"not one of the last":       {maxOutside, until.Add(-1), health.Closed},
	} {
		f := newFixture(t, "random", 2)
		f.cfg.Interval = time.Hour
		for range 2 {
			f.Checked(start, us[1].Address, errors.New("status 500"))
		}
		f.Set(start, us[:1])
		others := us[:1:1]
		for i := range c.others {
			others = append(others, Upstream{Address: fmt.Sprintf("10.1.%d.%d:9000", i/256, i%256)})
		}
		f.Set(start, others)
		for _, u := range others[1:] {
			f.Checked(start, u.Address, health.ErrRefused)
		}
		f.Set(start, us[:1])
		assert.LessOrEqual(t, len(f.members), 1+maxOutside, name)
		f.Set(c.now, us[:1])
		f.Set(c.now, us)
		assert.Equal(t, c.want, f.state(c.now, us[1].Address).Breaker.State, name)
	}
}
