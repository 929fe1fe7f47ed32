package pool

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// After any history, the estimate is the report plus the claims and minus the ends since, counted from the whole history. If
// the reports are doubted, only this sidecar's own jobs count.
func TestEstimateAgainstHistory(t *testing.T) {
	type past struct {
		*Assignment
		claimed, ended time.Time
	}
	rng := rand.New(rand.NewPCG(7, 7))
	f, address := newFixture(t, "random", 1), upstreams(1)[0].Address
	now, last, reported := start, time.Time{}, 0.0
	var history []*past
	for range 5000 {
		now = now.Add(time.Duration(1+rng.IntN(300)) * time.Millisecond)
		switch k := rng.IntN(10); {
		case k < 5:
			l := f.must(now, Request{}, nil)
			history = append(history, &past{Assignment: l, claimed: now})
		case k < 9 && len(history) > 0:
			h := history[rng.IntN(len(history))]
			if h.ended.IsZero() {
				answer(h.Assignment, now)
				h.ended = now
			}
		default:
			at := now.Add(-time.Duration(rng.IntN(1000)) * time.Millisecond)
			if !at.After(last) {
				continue
			}
			reported = float64(rng.IntN(60))
			f.Report(now, address, report(at, reported, 0))
			last = at
		}
		want, assigned, own := reported, reported, 0.0
		for _, h := range history {
			open := h.ended.IsZero()
			if open {
				own++
			}
			seen := !h.claimed.After(last)
			if !seen {
				assigned++
			}
			switch {
			case !seen && open:
				want++
			case seen && !open && h.ended.After(last):
				want--
			}
		}
		if last.IsZero() || now.Sub(last) > 15*time.Second || f.set[0].figures.doubts.doubted {
			want, assigned = own, own
		}
		require.InDelta(t, math.Max(want, own), f.States(now)[0].Jobs, 1e-9)
		require.InDelta(t, assigned, f.set[0].load.assigned(f.set[0].isFresh(now, f.cfg.Interval)), 1e-9)
	}
}

// Without reports, memory is bounded and the counts stay exact.
func TestEstimateIsBounded(t *testing.T) {
	var e estimate
	e.adopt(start, 5, 0, -1, -1)
	now := start
	for range 5 * maxHistory {
		now = now.Add(time.Millisecond)
		e.claim(now, selection.High)
		e.claim(now, selection.Low)
		e.done(now)
	}
	assert.LessOrEqual(t, max(len(e.claims.latest), len(e.high.latest)), maxHistory)
	assert.Equal(t, 5*maxHistory, e.inFlight)
	assert.Equal(t, float64(5+5*maxHistory), e.present(true))
	assert.Equal(t, float64(5+10*maxHistory), e.assigned(true))
	e.adopt(now.Add(-10*time.Millisecond), float64(5*maxHistory), 0, -1, -1)
	assert.Equal(t, float64(5*maxHistory+10), e.present(true), "what happened after the report's instant is counted anew")
	e.reset()
	assert.Equal(t, float64(5*maxHistory), e.present(false))
}

// A high job overtakes the low jobs that wait for a core, if the upstream reports priorities.
func TestHighJobsOvertakeLowOnes(t *testing.T) {
	for name, c := range map[string]struct {
		low, high  float64 // stalled
		silent     bool    // about priorities
		claims     []selection.Priority
		ends       int
		after      time.Duration
		want, jobs float64
	}{
		"a low backlog":                     {low: 38, want: 38, jobs: 54},
		"high ones among it":                {low: 38, high: 3, want: 38, jobs: 57},
		"own low jobs wait, too":            {low: 38, claims: []selection.Priority{selection.Low}, want: 39, jobs: 55},
		"own high jobs are ahead":           {low: 38, claims: []selection.Priority{selection.High, selection.Low}, want: 39, jobs: 56},
		"the first of them have started":    {low: 38, high: 3, ends: 2, want: 38, jobs: 55},
		"all of them and two of the others": {low: 38, high: 3, ends: 5, want: 36, jobs: 52},
		"no backlog":                        {jobs: 16},
		"all wait high":                     {high: 9, jobs: 25},
		"no priorities in the report":       {low: 38, silent: true, jobs: 54},
		"the report is old":                 {low: 38, after: time.Minute, jobs: 5},
	} {
		t.Run(name, func(t *testing.T) {
			f, u := newFixture(t, "expected", 1), upstreams(1)[0].Address
			var own []*Assignment
			for range 5 {
				own = append(own, f.must(start, Request{}, nil))
			}
			r := report(start.Add(time.Second), 16, c.low)
			r.Stalled[selection.High], r.ByPriority = c.high, !c.silent
			f.Report(start.Add(time.Second), u, r)
			now := start.Add(2*time.Second + c.after)
			for _, p := range c.claims {
				f.must(now, Request{Priority: p}, nil)
			}
			for _, a := range own[:c.ends] {
				answer(a, now)
			}
			for priority, want := range map[selection.Priority]float64{selection.High: c.want, selection.Low: 0} {
				ranking, err := f.Explain(now, Request{Priority: priority})
				require.NoError(t, err)
				assert.Equal(t, []float64{want, c.jobs}, []float64{ranking[0].Overtaken, ranking[0].Jobs}, "%v", priority)
			}
		})
	}
}

// Reports with too few jobs are doubted. In each case one job, one report or half an interval decides.
func TestWhenAReportIsDoubted(t *testing.T) {
	half := 2500 * time.Millisecond
	for name, c := range map[string]struct {
		there, later int // jobs that came before the first report, and between the first and the second
		every        time.Duration
		reported     []float64
		doubted      bool
	}{
		"fewer than half":          {5, 0, half, []float64{9, 2, 2}, true},
		"half":                     {4, 0, half, []float64{9, 2, 2}, false},
		"half of those that wait":  {4, 1, half, []float64{9, 2, 2}, false},
		"once":                     {5, 0, half, []float64{9, 2}, false},
		"not in a row":             {5, 0, half, []float64{9, 2, 3, 2}, false},
		"at once after the other":  {5, 0, half - 1, []float64{9, 2, 2}, false},
		"believed again":           {5, 0, half, []float64{9, 2, 2, 3, 3}, false},
		"believed once":            {5, 0, half, []float64{9, 2, 2, 3}, true},
		"believed, but not in row": {5, 0, half, []float64{9, 2, 2, 3, 2, 3}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f, now := newFixture(t, "random", 1), start
			address := upstreams(1)[0].Address
			f.claims(t, now, c.there)
			for i, jobs := range c.reported {
				now = now.Add(c.every)
				f.Report(now, address, report(now, jobs, 0))
				if i == 0 {
					f.claims(t, now, c.later)
				}
			}
			assert.Equal(t, c.doubted, f.state(now, address).Implausible != "")
		})
	}
}

// A report need not contain jobs that were sent before the upstream left and joined again, or restarted: they can be at the
// process before.
func TestJobsOfAnEarlierProcessAreNotMissing(t *testing.T) {
	us := upstreams(1)
	for name, again := range map[string]func(f *fixture, now time.Time){
		"joined again": func(f *fixture, now time.Time) { f.Set(now, nil); f.Set(now, us) },
		"restarted":    func(f *fixture, now time.Time) { us[0].StartedAt = now; f.Set(now, us) },
	} {
		f, now := newFixture(t, "random", 0), start
		us[0].StartedAt = start
		f.Set(now, us)
		report := func(jobs float64) string {
			now = now.Add(f.cfg.Interval)
			f.Report(now, us[0].Address, report(now, jobs, 0))
			return f.state(now, us[0].Address).Implausible
		}
		f.claims(t, now, 9)
		report(9)
		again(f, now)
		for range 4 {
			assert.Empty(t, report(0), name)
		}
		f.claims(t, now, 9)
		for range 3 {
			report(0)
		}
		assert.NotEmpty(t, report(0), "%s: jobs that were sent since are missing", name)
	}
}

// Cores that are not reported are inferred from the running jobs: as many if joblets were stalled, else several times as many.
func TestInferredCores(t *testing.T) {
	var e estimate
	at := start
	cores := func(running, stalled float64) float64 {
		at = at.Add(time.Second)
		e.adopt(at, running, stalled, -1, -1)
		return e.cores()
	}
	assert.Zero(t, cores(0, 0), "nothing was seen")
	assert.Equal(t, 8.0, cores(2, 0))
	assert.Equal(t, 8.0, cores(1, 0))
	assert.Equal(t, 8.0, cores(0, 1), "none of it runs")
	assert.Equal(t, 3.0, cores(3, 1), "there are no more")
	assert.Equal(t, 4.0, cores(5, 1), "the mean of what was seen")
	assert.Equal(t, 4.0, cores(1, 0))
	assert.Equal(t, 20.0, cores(5, 0), "there are more")
	assert.Equal(t, 256.0, cores(1e9, 0))
	e.reset()
	assert.Zero(t, e.cores())
	e.adopt(at, 30, 0, -1, 4)
	assert.Equal(t, 120.0, e.cores(), "nothing was stalled yet: they may share the cores")
	e.adopt(at, 30, 2, -1, 4)
	assert.Equal(t, 4.0, e.cores(), "the others wait for a fetch")
	e.adopt(at, 32, 2, -1, -1)
	assert.Equal(t, 5.0, e.cores(), "as many wait as in the last report that had busy cores")

	f, w := newFixture(t, "random", 1), &witness{}
	f.cfg.Policy = w
	r := report(start, 1, 1)
	r.Cores = 0
	f.Report(start, f.set[0].Address, r)
	f.must(start, Request{}, nil)
	assert.Equal(t, 1.0, w.views[0].Cores, "a policy sees them")
}

// The fleet is full when the upstreams that take jobs have no free core.
func TestFull(t *testing.T) {
	f, us := newFixture(t, "random", 2), upstreams(2)
	busy := func(i int, running float64) {
		r := report(start, running, 0)
		r.Cores = 4
		f.Report(start, us[i].Address, r)
	}
	busy(0, 4)
	busy(1, 3)
	assert.False(t, f.IsFull(start))
	assert.True(t, f.Drain(us[1].Address, true))
	assert.True(t, f.IsFull(start), "what drains takes no jobs")
	f.Drain(us[1].Address, false)
	f.must(start, Request{Among: places([]string{us[1].Address})}, nil)
	assert.True(t, f.IsFull(start))

	for i, stalled := range []float64{1, 0} { // of six jobs, three wait for what others compute
		r := report(start.Add(time.Duration(i+1)*time.Second), 6, stalled)
		r.Cores, r.CoresBusy = 4, 3
		f.Report(r.At, us[0].Address, r)
	}
	now := start.Add(2 * time.Second)
	assert.False(t, f.IsFull(now))
	assert.True(t, f.must(now, Request{Among: places([]string{us[0].Address}), Project: 1}, nil).idle)
}
