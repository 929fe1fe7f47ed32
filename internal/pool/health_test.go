package pool

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patient is the health of one upstream and the time, which only the test moves.
type patient struct {
	*health
	t   *testing.T
	now time.Time
	cfg Config
}

func newPatient(t *testing.T, seed uint64) *patient {
	p := &patient{health: &health{}, t: t, now: start, cfg: Config{
		Settings: Settings{Breaker: DefaultBreaker()}, Rand: rand.New(rand.NewPCG(seed, 0)), Hold: time.Second,
		Gate: func(trips func(int) bool) Gate { return (&testGate{trips: trips}).allow },
	}}
	p.renew(&p.cfg)
	return p
}

func (p *patient) sleep(d time.Duration) { p.now = p.now.Add(d) }

func (p *patient) state() BreakerState { return p.status(p.now).State }

// job lets a job through.
func (p *patient) job() entry {
	p.t.Helper()
	require.True(p.t, p.ready(p.now), "not ready")
	e, ok := p.enter(p.now, false)
	require.True(p.t, ok, "refused")
	return e
}

func (p *patient) ends(e entry, o Outcome) { p.record(p.now, e, o, &p.cfg) }

// try lets one job through for each outcome, one after another.
func (p *patient) try(outcomes ...Outcome) {
	p.t.Helper()
	for _, o := range outcomes {
		p.ends(p.job(), o)
	}
}

func (p *patient) fail(times int) {
	p.t.Helper()
	for range times {
		p.try(Failed)
	}
}

func (p *patient) refuses() {
	p.t.Helper()
	_, ok := p.enter(p.now, false)
	assert.False(p.t, ok, "let through")
}

// wait sleeps until an open breaker may be tried, and returns for how long.
func (p *patient) wait() time.Duration {
	p.t.Helper()
	require.Equal(p.t, BreakerOpen, p.state())
	left := p.status(p.now).Until.Sub(p.now)
	p.sleep(left - 1)
	p.refuses()
	p.sleep(1)
	assert.Equal(p.t, BreakerHalfOpen, p.state(), "also without a job")
	return left
}

// What opens a breaker, and what it says of that.
func TestWhatOpensABreaker(t *testing.T) {
	for want, outcomes := range map[string][]Outcome{
		"5 answers of 500 or more in a row":                {Failed, Failed, Failed, Failed, Failed},
		"5 connections refused or lost in a row":           {Failed, Answered, Refused, Refused, Refused, Refused, Refused},
		"5 failures in a row, the last: no answer in time": {NoAnswer, Truncated, Failed, TimedOut, TimedOut},
		"":                                  {Failed, Failed, Failed, Failed, Answered, Failed, Failed, Failed, Failed},
		"5 jobs without an answer in a row": {NoAnswer, NoAnswer, Gone, NoAnswer, Moved, NoAnswer, NotStarted, NoAnswer},
		"5 failures in a row, the last: an answer of 500 or more": {Refused, Failed, Failed, Failed, Failed},
	} {
		p := newPatient(t, 1)
		for _, o := range outcomes {
			assert.Equal(t, BreakerClosed, p.state())
			p.sleep(100 * time.Hour) // time forgives nothing
			p.try(o)
		}
		assert.Equal(t, want, p.status(p.now).Why)
		assert.Equal(t, want != "", p.state() == BreakerOpen)
	}
}

func TestOpenTimes(t *testing.T) {
	p := newPatient(t, 1)
	p.fail(5)
	for i, want := range []float64{5, 10, 20, 40, 60, 60} {
		assert.Equal(t, i+1, p.status(p.now).Trips)
		assert.InEpsilon(t, want, p.wait().Seconds(), 0.2, "they double up to the bound")
		p.try(Refused)
		assert.Equal(t, "the job that tried it again failed: a connection refused or lost", p.status(p.now).Why)
	}
	p.wait()
	p.try(Answered)
	assert.Equal(t, Breaker{State: BreakerClosed, Since: p.now, Trips: 7}, p.status(p.now))
	text, err := json.Marshal(p.status(p.now))
	require.NoError(t, err)
	assert.Contains(t, string(text), `"state":"closed"`)
	p.sleep(time.Minute - 1)
	p.fail(5)
	assert.InEpsilon(t, 60, p.wait().Seconds(), 0.2, "it has not worked for long enough")
	p.try(Answered)
	p.sleep(time.Minute)
	p.fail(5)
	assert.InEpsilon(t, 5, p.wait().Seconds(), 0.2)
	assert.Equal(t, 1, p.status(p.now).Trips)

	first, last := time.Hour, time.Duration(0)
	for seed := range uint64(20) {
		p := newPatient(t, seed)
		p.fail(5)
		open := p.status(p.now).Until.Sub(p.now)
		first, last = min(first, open), max(last, open)
	}
	assert.Greater(t, last-first, time.Second, "sidecars try it again at different times")
}

func TestAHastenedOpenTimeIsTheFirstOne(t *testing.T) {
	p := newPatient(t, 1)
	p.hasten()
	assert.Equal(t, Breaker{State: BreakerClosed}, p.status(p.now), "a closed breaker has none")
	p.fail(5)
	for _, want := range []float64{5, 10, 20, 40, 60, 60} {
		left := p.status(p.now).Until.Sub(p.now)
		assert.InEpsilon(t, want, left.Seconds(), 0.2, "the growth goes on")
		p.hasten()
		hastened := p.wait()
		assert.InEpsilon(t, 5, hastened.Seconds(), 0.2)
		assert.LessOrEqual(t, hastened, left)
		probe := p.job()
		p.hasten()
		p.refuses() // one probe at a time
		p.ends(probe, Failed)
	}
}

// Two health checks that fail in a row open the breaker, and keep it open; one that passes ends that.
func TestHealthChecks(t *testing.T) {
	for name, before := range map[string][]Outcome{"idle": nil, "with jobs": {Answered}} {
		p := newPatient(t, 1)
		p.cfg.Interval = 5 * time.Second
		p.try(before...)
		sick := errors.New("status 503")
		check := func(why error) { p.checked(p.now, why, &p.cfg) }
		check(sick)
		check(nil)
		check(sick)
		require.Equal(t, BreakerClosed, p.state(), name)
		check(sick)
		for range 100 { // it stays open, and does not open anew
			require.Equal(t, "health check failed: status 503", p.status(p.now).Why)
			require.Equal(t, 1, p.status(p.now).Trips)
			p.sleep(6 * time.Second)
			require.Equal(t, BreakerOpen, p.state(), name)
			check(sick)
		}
		check(nil)
		require.Equal(t, BreakerHalfOpen, p.state(), name)
		probe := p.job()
		check(sick)
		check(sick)
		require.Equal(t, BreakerOpen, p.state(), "the checks know better than the probe")
		p.ends(probe, Answered)
		require.Equal(t, BreakerOpen, p.state(), "which came before")
		check(nil)
		p.try(Answered)
		require.Equal(t, BreakerClosed, p.state(), name)
	}
}

// One refused connection means that the upstream is down, until it is reached.
func TestARefusedConnectionIsDown(t *testing.T) {
	p := newPatient(t, 1)
	p.cfg.Interval = 5 * time.Second
	refused := fmt.Errorf("dial tcp: %w", ErrRefused)
	since := p.now
	for range 100 { // it stays down, and does not open anew
		p.checked(p.now, refused, &p.cfg)
		require.Equal(t, BreakerOpen, p.state())
		require.Equal(t, since, p.down)
		require.Equal(t, "connection refused", p.status(p.now).Why)
		require.Equal(t, 1, p.status(p.now).Trips)
		p.sleep(6 * time.Second)
	}
	p.reached(p.now, &p.cfg)
	require.Equal(t, BreakerClosed, p.state())
	require.Zero(t, p.down)
	p.try(Answered)
	p.fail(5)
	p.reached(p.now, &p.cfg)
	require.Equal(t, BreakerOpen, p.state(), "what opened for failures of jobs stays open")
}

// A job or a poll that is refused makes the upstream not eligible at once, with the reason.
func TestDownIsDown(t *testing.T) {
	second := start.Add(time.Second)
	for name, refuse := range map[string]func(f *fixture, a *Assignment){
		"poll": func(f *fixture, a *Assignment) { f.Checked(second, a.Address, ErrRefused) },
		"job":  func(_ *fixture, a *Assignment) { a.ConnectionRefused(second) },
	} {
		f := newFixture(t, "random", 2)
		a := f.must(start, Request{}, nil)
		refuse(f, a)
		a.Done(second, Refused)
		s := f.state(second, a.Address)
		assert.Equal(t, Shut, s.Reason, name)
		assert.Equal(t, "down: connection refused since 00:00", s.Why, name)
		f.Report(second, a.Address, report(second, 0, 0))
		assert.True(t, f.state(second, a.Address).Eligible, name)
	}
}

// A health check that passes says little about how jobs fare: of the open time that they began it ends
// only the growth.
func TestAHealthCheckDoesNotCloseABreaker(t *testing.T) {
	p := newPatient(t, 1)
	for _, why := range []error{errHung, errHung, nil} {
		p.checked(p.now, why, &p.cfg)
	}
	p.try(Answered)
	p.fail(5)
	first := p.wait()
	p.fail(1)
	p.checked(p.now, nil, &p.cfg)
	require.Equal(t, BreakerOpen, p.state())
	assert.Less(t, p.wait(), 2*first)
	p.try(Answered)
	p.checked(p.now, nil, &p.cfg)
	assert.Equal(t, BreakerClosed, p.state())
}

// What the upstream tells of the jobs of all sidecars: a step is a report of how many jobs ended and
// failed in all, or jobs of this sidecar.
func TestFailuresOfOthers(t *testing.T) {
	type told [2]float64
	for name, c := range map[string]struct {
		steps []any // told, or Outcome
		why   string
	}{
		"one failure is enough where most jobs fail": {[]any{told{0, 0}, told{10, 5}, Failed}, "an answer of 500 or more, while at least half of the jobs of all sidecars fail there"},
		"none is not: they may be at fault":          {[]any{told{0, 0}, told{10, 10}}, ""},
		"a failure before counts as well":            {[]any{told{0, 0}, Failed, told{3, 1}, told{6, 3}}, "a job failed, and so did at least half of the jobs of all sidecars there"},
		"nothing is known of the time before":        {[]any{told{100, 100}, Failed}, ""},
		"silence changes nothing":                    {[]any{told{0, 0}, told{10, 10}, told{10, 10}, Failed}, "an answer of 500 or more, while at least half of the jobs of all sidecars fail there"},
		"an answer ends it":                          {[]any{told{0, 0}, told{10, 10}, Answered, Failed}, ""},
		"and so do the jobs of others":               {[]any{told{0, 0}, told{10, 10}, told{20, 10}, Failed}, ""},
		"it has restarted":                           {[]any{told{9, 9}, told{5, 1}, Failed}, ""},
		"it does not say":                            {[]any{told{0, 0}, told{5, -1}, told{10, 10}, Failed}, ""},
		"it stays open while others fail":            {[]any{told{0, 0}, told{1, 1}, Failed, told{3, 3}}, "jobs of other sidecars fail there"},
		"its own failure is not another's":           {[]any{told{0, 0}, told{1, 1}, Failed, told{2, 2}}, "an answer of 500 or more, while at least half of the jobs of all sidecars fail there"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPatient(t, 1)
			for _, step := range c.steps {
				p.sleep(time.Second)
				switch s := step.(type) {
				case told:
					p.hear(p.now, Report{Completed: s[0], Failed: s[1]}, &p.cfg)
				case Outcome:
					if p.try(s); s == Failed {
						p.others.seen++
					}
				}
			}
			assert.Equal(t, c.why, p.status(p.now).Why)
		})
	}
	p := newPatient(t, 1)
	p.hear(p.now, Report{}, &p.cfg)
	p.hear(p.now, Report{Completed: 1, Failed: 1}, &p.cfg)
	p.fail(1)
	p.wait()
	probe := p.job()
	p.hear(p.now, Report{Completed: 9, Failed: 9}, &p.cfg)
	assert.Equal(t, BreakerHalfOpen, p.state(), "a probe under way decides for itself")
	p.ends(probe, Answered)
	assert.Equal(t, BreakerClosed, p.state())
}

// oracle is the breaker as its documentation tells it, open times included.
type oracle struct {
	state    BreakerState
	epoch    int // counts transitions: a verdict counts in its own epoch only
	failures int
	until    time.Time // open: may be tried; half open: the probe is overdue
	probe    int       // the ticket of the job under way as the probe; 0 is none
	closedAt time.Time // of the last time that it closed
	open     time.Duration
}

func (o *oracle) enter(now time.Time, ticket int) bool {
	switch {
	case o.state == BreakerClosed:
		return true
	case now.Before(o.until) && (o.state == BreakerOpen || o.probe != 0):
		return false
	}
	o.state = BreakerHalfOpen
	o.probe, o.until = ticket, now.Add(time.Minute)
	return true
}

// done returns whether the breaker opened, for how long without jitter.
func (o *oracle) done(now time.Time, ticket, epoch int, past bool, v Outcome) (time.Duration, bool) {
	switch {
	case epoch != o.epoch, past && v != Answered:
	case v == Gone && o.probe == ticket:
		o.probe = 0
	case v == Gone:
	case v == Answered && o.state == BreakerClosed:
		o.failures = 0
	case v == Answered:
		o.enters(BreakerClosed)
		o.closedAt = now
	default:
		o.failures++
		if o.state == BreakerClosed && o.failures < 5 {
			return 0, false
		}
		o.open = min(2*o.open, time.Minute)
		if o.open == 0 || o.state == BreakerClosed && now.Sub(o.closedAt) >= time.Minute {
			o.open = 5 * time.Second
		}
		o.enters(BreakerOpen)
		return o.open, true
	}
	return 0, false
}

func (o *oracle) enters(to BreakerState) {
	o.state = to
	o.epoch++
	o.failures, o.probe = 0, 0
}

func TestAgainstTheOracle(t *testing.T) {
	visits := map[BreakerState]int{}
	for seed := range uint64(100) {
		againstOracle(t, seed, visits)
	}
	for _, state := range []BreakerState{BreakerClosed, BreakerHalfOpen, BreakerOpen} {
		require.Greater(t, visits[state], 1000, "%v was hardly tried", state)
	}
}

func againstOracle(t *testing.T, seed uint64, visits map[BreakerState]int) {
	type job struct {
		entry
		ticket, epoch int
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	p, o := newPatient(t, seed), &oracle{state: BreakerClosed}
	var jobs []*job
	sick := 0.5
	for step := range 1000 {
		switch action := rng.IntN(100); {
		case action < 5:
			sick = rng.Float64()
		case action < 45:
			ready := p.ready(p.now)
			e, ok := p.enter(p.now, false)
			require.Equal(t, ready, ok, "seed %d, step %d", seed, step)
			require.Equal(t, o.enter(p.now, step+1), ok, "seed %d, step %d", seed, step)
			if ok || rng.IntN(8) == 0 { // or it goes there in panic
				jobs = append(jobs, &job{entry: e, ticket: step + 1, epoch: o.epoch})
			}
		case action < 85 && len(jobs) > 0:
			// The newest are likelier than the old.
			i := len(jobs) - 1 - min(rng.IntN(len(jobs)), rng.IntN(len(jobs)))
			j := jobs[i]
			jobs = slices.Delete(jobs, i, i+1)
			v := Answered
			if rng.Float64() < sick {
				v = Failed
			}
			if rng.IntN(5) == 0 {
				v = Gone
			}
			p.ends(j.entry, v)
			if open, opened := o.done(p.now, j.ticket, j.epoch, j.past, v); opened {
				o.until = p.status(p.now).Until // the jitter is not the oracle's to know
				require.InEpsilon(t, open.Seconds(), o.until.Sub(p.now).Seconds(), 0.2, "seed %d, step %d", seed, step)
			}
		case rng.IntN(3) == 0:
			p.sleep(time.Duration(rng.IntN(70)) * time.Second)
		default:
			p.sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
		}
		want := o.state
		if want == BreakerOpen && !p.now.Before(o.until) {
			want = BreakerHalfOpen
		}
		require.Equal(t, want, p.state(), "seed %d, step %d", seed, step)
		visits[want]++
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
		"no sign of life": {func(*fixture, *Assignment) {}, "it took no connection in time"},
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
			assert.Equal(t, 1, f.members[open[0].Address].health.row, "it counts once")
		})
	}
}

// What is told of all jobs comes with reports; this sidecar's own failure is one of them.
func TestFailuresInReports(t *testing.T) {
	f, address := newFixture(t, "random", 1), upstreams(1)[0].Address
	f.must(start, Request{}, nil).Answered(start, false, nil)
	assert.InDelta(t, 1, f.members[address].health.others.seen, 0)
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
