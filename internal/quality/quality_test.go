package quality

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// served is a job that was answered in full.
func served(p selection.Priority, firstByte, lastByte time.Duration) *Job {
	return &Job{
		Priority: p, Outcome: intake.Answered, Completeness: intake.Complete, Arrived: start,
		FirstByte: firstByte, LastByte: lastByte, Waited: -1,
	}
}

func TestFigures(t *testing.T) {
	m := New(start)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		m.Observe(start, served(selection.High, time.Duration(rng.Float64()*1e9), 2*time.Second))
	}
	m.Observe(start, served(selection.Low, time.Second, 3*time.Second))
	for _, j := range []Job{
		{Outcome: intake.Truncated, Completeness: intake.Partial, FirstByte: time.Second, LastByte: time.Hour, Waited: -1},
		{Outcome: intake.Shed}, {Outcome: intake.Deadline}, {Outcome: intake.Deadline}, {Outcome: intake.Broken},
		{Outcome: intake.Gone, Completeness: intake.Partial}, {Outcome: intake.Rejected}, {Outcome: intake.TooLarge},
		{Outcome: intake.Failed, Completeness: intake.Complete, FirstByte: time.Second, LastByte: time.Second, Waited: -1},
	} {
		m.Observe(start, &j)
	}
	for i, seconds := range []float64{60, 300, 3600} {
		w := m.windows(start.Add(time.Second), "")[i]
		assert.Equal(t, seconds, w.Seconds)
		assert.Equal(t, 1.0, w.Covered)
		assert.Equal(t, uint64(1000), w.High.Jobs)
		for _, q := range []struct{ want, got float64 }{{0.5, w.High.FirstByte.P50}, {0.9, w.High.FirstByte.P90}, {0.99, w.High.FirstByte.P99}, {1, w.High.FirstByte.Max}, {0.5, w.High.FirstByte.Mean}} {
			assert.InEpsilon(t, q.want, q.got, 0.05)
		}
		assert.Equal(t, Figures{
			Jobs: 7, Complete: 2, Partial: 1, Absent: 4, Failed: 1,
			Lost:      map[string]uint64{"truncated": 1, "shed": 1, "deadline": 2, "broken": 1},
			FirstByte: Quantiles{Count: 3, Mean: 1, P50: w.Low.FirstByte.P50, P90: w.Low.FirstByte.P90, P99: w.Low.FirstByte.P99, Max: 1},
			LastByte:  Quantiles{Count: 2, Mean: 2, P50: w.Low.LastByte.P50, P90: w.Low.LastByte.P90, P99: w.Low.LastByte.P99, Max: 3},
		}, w.Low)
		assert.Equal(t, uint64(1007), w.All.Jobs)
		assert.Equal(t, uint64(1003), w.All.FirstByte.Count)
	}
}

func TestStretchAndSlowdown(t *testing.T) {
	m := New(start)
	for range 3 {
		j := served(selection.Low, time.Second, 4*time.Second)
		j.Waited = 3 * time.Second // it would have taken one
		m.Observe(start, j)
	}
	j := served(selection.Low, time.Second, 4*time.Second)
	j.Waited = 0
	m.Observe(start, j)
	m.Observe(start, served(selection.Low, time.Second, time.Hour)) // nobody told its wait
	f := m.windows(start, "")[0].Low
	assert.Equal(t, uint64(4), f.Stretch.Count)
	assert.InEpsilon(t, (3*4.0+1)/4, f.Stretch.Mean, 1e-9)
	assert.InEpsilon(t, 3*0.75/4, f.Slowdown, 1e-9)
}

func TestWindowsRoll(t *testing.T) {
	m := New(start)
	jobs := func(after time.Duration) (n [3]uint64) {
		for i, w := range m.windows(start.Add(after), "") {
			n[i] = w.All.Jobs
		}
		return n
	}
	for s := range 2 * time.Hour / time.Second {
		m.Observe(start.Add(s*time.Second), served(selection.Low, time.Second, time.Second))
	}
	at := 2*time.Hour - time.Second
	assert.Equal(t, [3]uint64{60, 300, 3600}, jobs(at), "at the end of a stretch")
	assert.Equal(t, [3]uint64{50, 250, 3000}, jobs(at+time.Second), "and at the beginning of the next")
	assert.Equal(t, 50.0, m.windows(start.Add(at+time.Second), "")[0].Covered)
	minute, lost := m.Minute(start.Add(at), "")
	assert.Equal(t, []uint64{60, 0}, []uint64{minute, lost})
	assert.Equal(t, [3]uint64{0, 200, 3000}, jobs(at+time.Minute))
	assert.Equal(t, [3]uint64{}, jobs(at+time.Hour+time.Second))
}

// What an upstream did is its own: times begin when a job is sent there, and an attempt
// that failed counts there, though the job was answered elsewhere.
func TestUpstreams(t *testing.T) {
	m := New(start)
	m.Follow([]string{"a:1", "b:1", "c:1"})
	j := served(selection.High, 5*time.Second, 6*time.Second)
	j.Waited = 4500 * time.Millisecond
	j.Attempts = []Attempt{
		{Upstream: "a:1", Outcome: pool.TimedOut, Start: time.Second, End: 4 * time.Second},
		{Upstream: "gone:1", Outcome: pool.Refused, Start: 4 * time.Second, End: 4 * time.Second},
		{Upstream: "b:1", Outcome: pool.Answered, Start: 4 * time.Second, End: 6 * time.Second},
	}
	m.Observe(start, j)
	cut := &Job{Outcome: intake.Truncated, Completeness: intake.Partial, FirstByte: time.Second, LastByte: 2 * time.Second, Waited: -1,
		Attempts: []Attempt{{Upstream: "b:1", Outcome: pool.Truncated, End: 2 * time.Second}}}
	m.Observe(start, cut)
	again := &Job{Outcome: intake.Truncated, Completeness: intake.Partial, FirstByte: 3 * time.Second, LastByte: 4 * time.Second, Waited: -1,
		Attempts: []Attempt{{Upstream: "c:1", Outcome: pool.Truncated, End: time.Second}, {Upstream: "gone:1", Outcome: pool.Truncated, Start: time.Second}}}
	m.Observe(start, again)
	left := &Job{Outcome: intake.Answered, Completeness: intake.Complete, Waited: -1,
		Attempts: []Attempt{{Upstream: "a:1", Outcome: pool.Moved}, {Upstream: "b:1", Outcome: pool.Gone}}}
	m.Observe(start, left)

	all := m.windows(start, "")[0].All
	assert.Equal(t, []uint64{4, 2, 2, 0}, []uint64{all.Jobs, all.Complete, all.Partial, all.Absent})
	a := m.windows(start, "a:1")[0].All
	assert.Equal(t, Figures{Jobs: 1, Absent: 1, Lost: map[string]uint64{"no_answer": 1}}, a)
	b := m.windows(start, "b:1")[0].All
	assert.Equal(t, []uint64{2, 1, 1, 0}, []uint64{b.Jobs, b.Complete, b.Partial, b.Absent})
	assert.InEpsilon(t, 1.0, b.FirstByte.Max, 1e-9)
	assert.InEpsilon(t, 2.0, b.LastByte.Max, 1e-9)
	assert.InEpsilon(t, 2/1.5, b.Stretch.Max, 1e-9)
	assert.Nil(t, m.windows(start, "gone:1"))
	assert.Equal(t, uint64(1), m.windows(start, "c:1")[0].All.Absent, "what was answered in part came from elsewhere")

	m.Follow([]string{"a:1"})
	m.Follow([]string{"a:1", "b:1"})
	assert.Equal(t, a, m.windows(start, "a:1")[0].All, "a stayed")
	assert.Zero(t, m.windows(start, "b:1")[0].All, "b is new")
}

// One of two upstreams slows down; the other and the fleet's other jobs do not hide it.
func TestAnUpstreamsMode(t *testing.T) {
	m := New(start)
	m.Follow([]string{"a:1", "b:1"})
	var changes []Change
	for i := range 300 {
		arrived := start.Add(time.Duration(i) * time.Second)
		wait := time.Duration(i) * 100 * time.Millisecond
		m.Began(arrived.Add(100*time.Millisecond), FirstByte{Upstream: "a:1", Arrived: arrived, Claimed: arrived})
		m.Began(arrived.Add(wait), FirstByte{Upstream: "b:1", Arrived: arrived.Add(-time.Minute), Claimed: arrived})
		for _, u := range []string{"a:1", "b:1"} {
			j := served(selection.Low, wait, wait)
			j.Attempts = []Attempt{{Upstream: u, Outcome: pool.Answered}}
			m.Observe(arrived.Add(wait), j)
		}
		changes = append(changes, m.Advance(arrived)...)
	}
	assert.Equal(t, Flat, m.Status("a:1").Mode)
	b := m.Status("b:1")
	assert.Equal(t, Growing, b.Mode)
	assert.InEpsilon(t, 0.1, b.Trend.Slope, 0.01)
	assert.InDelta(t, 20, b.Trend.Level, 10, "without the minute before")
	assert.Nil(t, b.DeadlineJobs, "no job has a bound")
	assert.Equal(t, changes, m.Changes())
	assert.Equal(t, Status{Since: start}, m.Status("c:1"))
	text, err := json.Marshal(b)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"mode":"growing"`)
}

func TestChangesAreBounded(t *testing.T) {
	m := New(start)
	now := start
	for range 2 * maxChanges {
		for range manyLost {
			m.Observe(now, &Job{Outcome: intake.Shed})
		}
		m.Advance(now)
		now = now.Add(time.Hour)
		m.Advance(now)
	}
	assert.Len(t, m.Changes(), maxChanges)
}

// Wild values do no harm: clocks that were set, times beyond all bounds.
func TestWildValues(t *testing.T) {
	m := New(start)
	m.Follow([]string{"a:1"})
	for i, d := range []time.Duration{-time.Hour, 0, 1, math.MaxInt64, math.MinInt64} {
		for range 50 {
			now := start.Add(time.Duration(i) * time.Second)
			j := served(selection.High, d, d)
			j.Waited = d
			j.Attempts = []Attempt{{Upstream: "a:1", Outcome: pool.Answered, Start: d, End: d}}
			m.Observe(now, j)
			m.Began(now, FirstByte{Upstream: "a:1", Arrived: now.Add(d), Claimed: now.Add(d), Bound: d})
			m.Advance(now)
		}
	}
	for _, address := range []string{"", "a:1"} {
		_, err := json.Marshal(m.windows(start.Add(5*time.Second), address))
		assert.NoError(t, err)
		_, err = json.Marshal(m.Status(address))
		assert.NoError(t, err)
	}
}

func TestImbalance(t *testing.T) {
	state := func(jobs float64, cores int, draining bool) pool.State {
		return pool.State{Upstream: pool.Upstream{Draining: draining}, Jobs: jobs, Cores: cores}
	}
	assert.Zero(t, Imbalance(nil))
	assert.Zero(t, Imbalance([]pool.State{state(0, 4, false), state(0, 4, false)}))
	assert.Zero(t, Imbalance([]pool.State{state(2, 1, false), state(8, 4, false), state(99, 4, true)}), "twice as many as cores at each")
	assert.Equal(t, 1.5, Imbalance([]pool.State{state(7, 1, false), state(0, 1, false), state(0, 1, false), state(0, 1, false)}))
	assert.Equal(t, 0.5, Imbalance([]pool.State{state(1, 0, false), state(3, 0, false)}), "of unknown size")
}

// Jobs that come at any distance count in each window as a list of all of them says.
func TestWindowsAgreeWithAList(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	m := New(start)
	var at time.Duration
	type one struct {
		at       time.Duration
		lastByte float64
	}
	var all []one
	for range 3000 {
		at += time.Duration(math.Exp(12*rng.Float64()) * float64(50*time.Millisecond)) // up to 2 h
		j := served(selection.Priority(rng.IntN(2)), time.Second, time.Duration(1+rng.IntN(9))*time.Second)
		m.Observe(start.Add(at), j)
		all = append(all, one{at, j.LastByte.Seconds()})
		look := at + time.Duration(rng.IntN(3))*30*time.Second
		for i, w := range m.windows(start.Add(look), "") {
			var count uint64
			sum, most := 0.0, 0.0
			for k := len(all) - 1; k >= 0 && all[k].at/spans[i].width > look/spans[i].width-6; k-- {
				count++
				sum += all[k].lastByte
				most = max(most, all[k].lastByte)
			}
			require.Equal(t, []uint64{count, count, count}, []uint64{w.All.Jobs, w.All.Complete, w.All.LastByte.Count})
			require.InDelta(t, sum, w.All.LastByte.Mean*float64(count), 1e-6*(1+sum))
			require.Equal(t, most, w.All.LastByte.Max)
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	m := New(start)
	m.Follow([]string{"a:1"})
	rng := rand.New(rand.NewPCG(1, 2))
	j := served(selection.Low, 0, 0)
	j.Attempts = []Attempt{{Upstream: "a:1", Outcome: pool.Answered}}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now := start.Add(time.Duration(i) * 5 * time.Millisecond)
		j.FirstByte = time.Duration(1e8 * math.Exp(rng.NormFloat64()))
		j.LastByte = 2 * j.FirstByte
		m.Began(now, FirstByte{Upstream: "a:1", Arrived: now.Add(-j.FirstByte), Claimed: now.Add(-j.FirstByte)})
		m.Observe(now, j)
	}
}

// fleet is a machine that follows 300 upstreams and has seen an hour of 100 jobs a second.
func fleet(b *testing.B) (*Machine, time.Time) {
	m := New(start)
	var addresses []string
	for i := range 300 {
		addresses = append(addresses, string(rune('a'+i)))
	}
	m.Follow(addresses)
	rng := rand.New(rand.NewPCG(1, 2))
	now := start
	for i := range 360_000 {
		now = start.Add(time.Duration(i) * 10 * time.Millisecond)
		u := addresses[rng.IntN(300)]
		j := served(selection.Priority(rng.IntN(2)), time.Duration(1e8*math.Exp(rng.NormFloat64())), time.Duration(1e9*math.Exp(rng.NormFloat64())))
		j.Attempts = []Attempt{{Upstream: u, Outcome: pool.Answered}}
		m.Began(now, FirstByte{Upstream: u, Arrived: now.Add(-j.FirstByte), Claimed: now.Add(-j.FirstByte)})
		m.Observe(now, j)
	}
	b.ResetTimer()
	return m, now
}

func BenchmarkAdvance300(b *testing.B) {
	m, now := fleet(b)
	for b.Loop() {
		m.Advance(now)
	}
}

func BenchmarkWindows(b *testing.B) {
	m, now := fleet(b)
	for b.Loop() {
		m.windows(now, "a")
	}
}
