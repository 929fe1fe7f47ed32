package quality

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

// served returns a job with a complete response.
func served(p selection.Priority, firstByte, lastByte time.Duration) *record.Job {
	return &record.Job{
		Facts: intake.Facts{Priority: p}, Outcome: intake.Answered, Completeness: intake.Complete, Arrived: start,
		TTFB: firstByte, Total: lastByte,
	}
}

func TestFigures(t *testing.T) {
	m := New(start)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		m.Ended(start, Default(), served(selection.High, time.Duration(rng.Float64()*1e9), 2*time.Second))
	}
	m.Ended(start, Default(), served(selection.Low, time.Second, 3*time.Second))
	for _, j := range []record.Job{
		{Outcome: intake.Truncated, Completeness: intake.Partial, TTFB: time.Second, Total: time.Hour},
		{Outcome: intake.Shed}, {Outcome: intake.Deadline}, {Outcome: intake.Deadline}, {Outcome: intake.Broken},
		{Outcome: intake.Shed, Shedding: intake.ProjectLimit}, {Outcome: intake.Shed, Shedding: intake.ProjectLimit},
		{Outcome: intake.Gone, Completeness: intake.Partial}, {Outcome: intake.Rejected}, {Outcome: intake.TooLarge},
		{Outcome: intake.Failed, Completeness: intake.Complete, TTFB: time.Second, Total: 3 * time.Second},
	} {
		m.Ended(start, Default(), &j)
	}
	windows := m.View(start.Add(time.Second), nil).Fleet.Windows
	for i, seconds := range []float64{60, 300, 3600} {
		w := windows[i]
		assert.Equal(t, []float64{seconds, 1}, []float64{w.Seconds, w.Covered})
		assert.Equal(t, uint64(10_000), w.High.Jobs)
		assert.InEpsilon(t, 0.5, w.High.FirstByte.P50, 0.06)
		assert.InEpsilon(t, 0.9, w.High.FirstByte.P90, 0.06)
		assert.InEpsilon(t, 0.99, w.High.FirstByte.P99, 0.06)
		assert.InEpsilon(t, 2, w.High.LastByte.P50, 0.06)
		assert.InEpsilon(t, 3, w.Low.LastByte.P99, 0.06, "an answer that was cut short ends early")
		assert.InEpsilon(t, 1, w.Low.FirstByte.P50, 0.06, "of those that had one")
		w.Low.FirstByte, w.Low.LastByte = Quantiles{}, Quantiles{}
		assert.Equal(t, Figures{
			Jobs: 7, Complete: 1, Failed: 1, Partial: 1, Absent: 4, Limited: 2,
		}, w.Low)
		assert.Equal(t, []uint64{10_007, 10_001}, []uint64{w.All.Jobs, w.All.Complete})
	}
}

// The windows equal the sums over a list of all jobs, for jobs at any distance.
func TestWindowsAgreeWithAList(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	m := New(start)
	m.Advance(start, Moment{Upstreams: []pool.State{state("a:1")}})
	var at time.Duration
	var all []time.Duration
	for range 3000 {
		at += time.Duration(math.Exp(12*rng.Float64()) * float64(50*time.Millisecond)) // up to 2 h
		j := served(selection.Priority(rng.IntN(2)), time.Second, time.Second)
		j.Attempts = []record.Attempt{{Upstream: "a:1", Outcome: pool.Answered}}
		m.Ended(start.Add(at), Default(), j)
		all = append(all, at)
		look := at + time.Duration(rng.IntN(3))*30*time.Second
		now := m.View(start.Add(look), []pool.State{state("a:1")})
		for i, w := range now.Fleet.Windows {
			var count uint64
			for k := len(all) - 1; k >= 0 && all[k]/step > look/step-time.Duration(spans[i]); k-- {
				count++
			}
			require.Equal(t, []uint64{count, count}, []uint64{w.All.Jobs, w.All.Complete})
			require.Equal(t, count, w.High.Jobs+w.Low.Jobs)
			if i == 0 {
				require.Equal(t, count, now.Upstreams[0].MinuteAttempts)
			}
		}
	}
	assert.Equal(t, 50.0, m.View(start.Add(2*time.Hour), nil).Fleet.Windows[0].Covered, "of the present step there is nothing yet")
}

func state(address string) pool.State {
	return pool.State{Upstream: pool.Upstream{Address: address}}
}

// Rows count attempts: a failed attempt counts there, although another upstream served the job. Refused connections do
// not change the mode.
func TestUpstreams(t *testing.T) {
	m := New(start)
	states := []pool.State{state("a:1"), state("b:1"), state("c:1")}
	m.Advance(start, Moment{Upstreams: states})
	end := func(o intake.Outcome, c intake.Completeness, attempts ...record.Attempt) {
		m.Ended(start, Default(), &record.Job{Outcome: o, Completeness: c, Attempts: attempts})
	}
	end(intake.Answered, intake.Complete, record.Attempt{Upstream: "a:1", Outcome: pool.TimedOut},
		record.Attempt{Upstream: "gone:1", Outcome: pool.Refused}, record.Attempt{Upstream: "b:1", Outcome: pool.Answered})
	end(intake.Truncated, intake.Partial, record.Attempt{Upstream: "b:1", Outcome: pool.Truncated})
	end(intake.Truncated, intake.Partial, record.Attempt{Upstream: "c:1", Outcome: pool.Truncated}, record.Attempt{Upstream: "gone:1", Outcome: pool.Truncated})
	end(intake.Failed, intake.Complete, record.Attempt{Upstream: "b:1", Outcome: pool.Failed})
	end(intake.Answered, intake.Complete, record.Attempt{Upstream: "a:1", Outcome: pool.Moved}, record.Attempt{Upstream: "b:1", Outcome: pool.Gone})

	rows := func() (n [][]uint64) {
		for _, u := range m.View(start, states).Upstreams {
			n = append(n, []uint64{u.MinuteAttempts, u.MinuteFailed})
		}
		return n
	}
	assert.Equal(t, [][]uint64{{1, 1}, {3, 2}, {1, 1}}, rows())
	m.Advance(start, Moment{Upstreams: states[:1]})
	m.Advance(start, Moment{Upstreams: states})
	assert.Equal(t, [][]uint64{{1, 1}, {0, 0}, {0, 0}}, rows(), "a stayed, the others are new")
	m = New(start)
	m.Advance(start, Moment{Upstreams: states})
	for _, c := range []struct {
		outcome pool.Outcome
		mode    Mode
	}{{pool.Refused, Unknown}, {pool.TimedOut, AttemptsFail}} {
		for range 20 {
			end(intake.Answered, intake.Complete, record.Attempt{Upstream: "b:1", Outcome: c.outcome}, record.Attempt{Upstream: "c:1"})
		}
		m.Advance(start.Add(time.Second), Moment{Upstreams: states})
		b := m.View(start, states).Upstreams[1]
		assert.Equal(t, []any{c.mode, b.MinuteAttempts}, []any{b.Mode, b.MinuteFailed})
	}
	assert.Equal(t, "20 of the 20 attempts of the last minute failed; by outcome: timed_out 20", m.upstreams["b:1"].Cause)
	assert.NotEqual(t, JobsFail, m.View(start, states).Fleet.Mode)
}

// One of two upstreams slows down. The other upstream and the fleet's other jobs do not hide
// it.
func TestAnUpstreamsMode(t *testing.T) {
	m := New(start)
	states := []pool.State{state("a:1"), state("b:1")}
	var changes []Change
	for i := range 300 {
		arrived := start.Add(time.Duration(i) * time.Second)
		wait := time.Duration(i) * 100 * time.Millisecond
		changes = append(changes, m.Advance(arrived, Moment{Upstreams: states})...)
		m.Began(arrived.Add(100*time.Millisecond), arrivedAt(arrived, 0), pool.Choice{Address: "a:1", Claimed: arrived}, nil)
		m.Began(arrived.Add(wait), arrivedAt(arrived.Add(-time.Minute), 0), pool.Choice{Address: "b:1", Claimed: arrived}, nil)
		for _, u := range []string{"a:1", "b:1"} {
			j := served(selection.Low, wait, wait)
			j.Attempts = []record.Attempt{{Upstream: u, Outcome: pool.Answered}}
			m.Ended(arrived.Add(wait), Default(), j)
		}
	}
	rows := m.View(start.Add(300*time.Second), append(states, state("c:1"))).Upstreams
	assert.Equal(t, []Mode{Steady, QueueGrows, Unknown}, []Mode{rows[0].Mode, rows[1].Mode, rows[2].Mode})
	last := slices.IndexFunc(changes, func(c Change) bool { return c.Upstream == "b:1" && c.Mode == QueueGrows })
	require.NotEqual(t, -1, last)
	assert.InEpsilon(t, 0.1, changes[last].Trend.Slope, 0.05, "without the minute before")
	text, err := json.Marshal(rows[1])
	require.NoError(t, err)
	var row Upstream
	require.NoError(t, json.Unmarshal(text, &row))
	assert.Equal(t, rows[1], row, "what top reads is what the sidecar wrote")
}

// If every upstream responds with 500, jobs are lost, unless that status counts as a result.
func TestErrorsAreLosses(t *testing.T) {
	for count500, want := range map[bool]Mode{true: JobsFail, false: Steady} {
		m, settings := New(start), Settings{Count500: count500}
		states := []pool.State{state("a:1")}
		now := start
		for range 60 {
			m.Advance(now, Moment{Upstreams: states})
			m.Began(now, arrivedAt(now.Add(-time.Second), 0), pool.Choice{Address: "a:1", Claimed: now.Add(-time.Second)}, nil)
			j := served(selection.High, time.Second, time.Second)
			j.Outcome, j.Attempts = intake.Failed, []record.Attempt{{Upstream: "a:1", Outcome: pool.Failed}}
			m.Ended(now, settings, j)
			now = now.Add(time.Second)
		}
		v := m.View(now, states)
		s := v.Fleet
		assert.Equal(t, []int{want.Number(), want.Number()}, []int{s.Mode.Number(), v.Upstreams[0].Mode.Number()})
		if f := s.Windows[1].All; count500 {
			assert.Equal(t, []uint64{60, 0, 60}, []uint64{f.Jobs, f.Complete, f.Failed})
			assert.Regexp(t, `^3 of the 3 jobs of the last minute failed; by outcome: failed 3$`, s.Cause)
		} else {
			assert.Equal(t, []uint64{60, 60, 0}, []uint64{f.Jobs, f.Complete, f.Failed})
		}
		m.Ended(now, Settings{Count500: !count500}, &record.Job{Outcome: intake.Failed, Completeness: intake.Complete})
		failed := map[bool]uint64{true: 60, false: 1}[count500]
		assert.Equal(t, failed, m.View(now, nil).Fleet.Windows[1].All.Failed, "what is set counts from then on")
	}
}

// Extreme values have no effect: changed clocks, or times beyond all bounds.
func TestExtremeTimes(t *testing.T) {
	m := New(start)
	states := []pool.State{state("a:1")}
	for i, d := range []time.Duration{-time.Hour, 0, 1, math.MaxInt64, math.MinInt64} {
		for range 50 {
			now := start.Add(time.Duration(i) * time.Second)
			j := served(selection.High, d, d)
			j.Attempts = []record.Attempt{{Upstream: "a:1", Outcome: pool.Answered, Start: d, End: d}}
			m.Ended(now.Add(-time.Minute), Default(), j)
			m.Began(now, arrivedAt(now.Add(d), d), pool.Choice{Address: "a:1", Claimed: now.Add(d)}, nil)
			m.Advance(now, Moment{Upstreams: states})
		}
	}
	now := start.Add(5 * time.Second)
	for _, v := range []any{m.View(now, states), m.Points(now)} {
		_, err := json.Marshal(v)
		assert.NoError(t, err)
	}
}

func TestPointsAreOfAnHour(t *testing.T) {
	m := New(start)
	now := start
	assert.Empty(t, m.Points(now))
	for i := range 2 * 60 * 60 {
		now = start.Add(time.Duration(i) * time.Second)
		for range 1 + i/3600 {
			m.Ended(now, Default(), served(selection.Low, time.Second, time.Second))
		}
		m.Ended(now, Default(), &record.Job{Outcome: intake.Failed, Completeness: intake.Complete, TTFB: time.Second})
		m.Ended(now, Default(), &record.Job{Outcome: intake.Truncated, Completeness: intake.Partial, TTFB: 9 * time.Second})
		m.Ended(now, Default(), &record.Job{Outcome: intake.NoAnswer})
		m.Advance(now, Moment{InFlight: i, Waiting: 7})
	}
	points := m.Points(now)
	require.Len(t, points, int(steps)-1, "the present one is not over")
	first, last := points[0], points[len(points)-1]
	assert.Equal(t, []int64{start.Unix() + 3610, start.Unix() + 7190}, []int64{first.At, last.At})
	assert.Equal(t, []int{3609, 7189, 7}, []int{first.InFlight, last.InFlight, last.Waiting})
	assert.InDelta(t, 5, last.Jobs, 0.05)
	assert.InDeltaSlice(t, []float64{1, 2, 9}, []float64{last.Failed, last.Lost, last.FirstByteP99}, 0.5)
	assert.InDelta(t, 1, last.FirstByteP50, 0.05)

	m.Advance(now.Add(time.Hour), Moment{})
	assert.Empty(t, m.Points(now.Add(time.Hour)), "nobody looked for an hour")
}

// A find counts at the upstream that responded, by its report, or else by the cache's assumed state. A job without
// data or response does not count.
func TestFinds(t *testing.T) {
	m := New(start)
	states := []pool.State{state("a:1"), state("b:1")}
	m.Advance(start, Moment{Upstreams: states})
	at := func(address string, c selection.Cache, hint *pool.Hint, shadow string, there selection.Cache) record.Attempt {
		return record.Attempt{Upstream: address, Outcome: pool.Answered, Cache: c, Hint: hint, Explanation: pool.Explanation{Shadow: shadow, ShadowCache: there}}
	}
	miss, silent := &pool.Hint{Known: true}, &pool.Hint{}
	for _, j := range []struct {
		key      uint64
		c        intake.Completeness
		attempts []record.Attempt
	}{
		{1, intake.Complete, []record.Attempt{at("a:1", selection.Cached, silent, "b:1", selection.NotCached)}},
		{1, intake.Complete, []record.Attempt{at("b:1", selection.Cached, nil, "", 0), at("a:1", selection.AssumedCached, miss, "a:1", selection.AssumedCached)}},
		{1, intake.Partial, []record.Attempt{at("a:1", selection.NotCached, nil, "", 0)}},
		{1, intake.Complete, []record.Attempt{at("b:1", selection.Cached, nil, "a:1", selection.Cached)}},
		{0, intake.Complete, []record.Attempt{at("a:1", selection.Cached, nil, "", 0)}},
		{1, intake.Absent, []record.Attempt{at("a:1", selection.Cached, nil, "", 0)}},
		{1, intake.Absent, nil},
	} {
		m.Ended(start, Default(), &record.Job{Facts: intake.Facts{Key: j.key}, Completeness: j.c, Attempts: j.attempts})
	}
	v := m.View(start.Add(time.Second), states)
	assert.Equal(t, CacheHits{Jobs: 4, Found: 2, Shadowed: 3, ShadowFound: 2}, v.Fleet.Windows[0].All.Data)
	assert.Equal(t, CacheHits{Jobs: 3, Found: 1, Shadowed: 2, ShadowFound: 1}, v.Upstreams[0].MinuteData)
	assert.Equal(t, CacheHits{Jobs: 1, Found: 1, Shadowed: 1, ShadowFound: 1}, v.Upstreams[1].MinuteData)
	for i := range 3 * time.Minute / time.Second {
		m.Advance(start.Add(i*time.Second), Moment{Upstreams: states})
	}
	points := m.Points(start.Add(3 * time.Minute))
	require.NotEmpty(t, points)
	assert.Equal(t, []float64{0.5, 2. / 3}, []float64{points[0].Found, points[0].ShadowFound})
	assert.Equal(t, []float64{-1, -1}, []float64{points[len(points)-1].Found, points[len(points)-1].ShadowFound}, "without jobs")
}

// A lock can be released before the mode of each upstream is updated, and between the parts of a view: jobs that end then count.
func TestJobsEndBetweenTheUpdatesOfModes(t *testing.T) {
	m, states, pauses := New(start), make([]pool.State, 10*mostJudged), 0
	for i := range states {
		states[i] = state(fmt.Sprintf("10.0.%d.%d:80", i/250, i%250))
	}
	m.Advance(start, Moment{Upstreams: states})
	sick := states[len(states)-9].Address // the last of the second part
	failed := &record.Job{Attempts: []record.Attempt{{Upstream: sick, Outcome: pool.NoAnswer}}}
	m.Pause = func(do func()) {
		pauses++
		m.Ended(start.Add(time.Second), Default(), failed)
		do()
	}
	changes := m.Advance(start.Add(time.Second), Moment{Upstreams: states})
	assert.Equal(t, mostJudged, pauses)
	require.NotEmpty(t, changes)
	last := changes[len(changes)-1]
	assert.Equal(t, []any{sick, AttemptsFail}, []any{last.Upstream, last.Mode})
	v := m.View(start.Add(time.Second), states)
	assert.Equal(t, mostJudged+1+len(states)/viewedAtOnce, pauses)
	assert.Equal(t, uint64(pauses-1), v.Upstreams[len(states)-9].MinuteFailed, "the last ended after its upstream was viewed")
}
