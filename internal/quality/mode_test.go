package quality

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

var start = time.Date(2019, 3, 13, 9, 0, 0, 0, time.UTC)

// since returns the instant this many seconds after the start.
func since(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// timed is a job given by its times from the start, in seconds.
type timed struct {
	arrived, firstByte, lastByte float64
	lost                         bool
}

func (x timed) job() record.Job {
	j := record.Job{
		Outcome: intake.Answered, Completeness: intake.Complete, Arrived: since(x.arrived),
		TTFB: time.Duration(x.firstByte * 1e9), Total: time.Duration(x.lastByte * 1e9),
	}
	if x.lost {
		j.Outcome, j.Completeness = intake.Deadline, intake.Absent
	}
	return j
}

// play passes jobs, in the order of their arrival, to a machine, evaluates it every second, and returns the modes that the
// fleet entered, and when.
func play(m *Machine, jobs []record.Job) (changes []Change, at []time.Time) {
	type event struct {
		at    time.Time
		job   *record.Job
		first bool
	}
	var events []event
	for i := range jobs {
		j := &jobs[i]
		events = append(events, event{at: j.Arrived.Add(j.Total), job: j})
		if j.Completeness != intake.Absent {
			events = append(events, event{at: j.Arrived.Add(j.TTFB), job: j, first: true})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
	arrived, inFlight := 0, 0
	for now := start; len(events) > 0; {
		now = now.Add(time.Second)
		for ; len(events) > 0 && !events[0].at.After(now); events = events[1:] {
			if e := events[0]; e.first {
				m.Began(e.at, arrivedAt(e.job.Arrived, 80*time.Second), pool.Choice{}, nil)
			} else {
				m.Ended(e.at, Default(), e.job)
				inFlight--
			}
		}
		for ; arrived < len(jobs) && !jobs[arrived].Arrived.After(now); arrived++ {
			inFlight++
		}
		changes = append(changes, m.Advance(now, Moment{InFlight: inFlight})...)
		for len(at) < len(changes) {
			at = append(at, now)
		}
	}
	return changes, at
}

// arrivedAt returns a job with this timeout for its first byte.
func arrivedAt(at time.Time, bound time.Duration) *dispatch.Job {
	if bound == 0 {
		return &dispatch.Job{Request: dispatch.Request{Arrived: at}}
	}
	return &dispatch.Job{Request: dispatch.Request{Arrived: at}, FirstByte: 2 * bound, Deadline: at.Add(bound)}
}

func modes(changes []Change) (list []Mode) {
	for _, c := range changes {
		list = append(list, c.Mode)
	}
	return list
}

// between is the time between two searches of the thesis's single bursts: the last of 16 starts
// 20.4 s after the first.
const between = 20.4 / 15

func TestTable1(t *testing.T) {
	first := []float64{2.51, 2.74, 4.37, 6.39, 8.38, 10.5, 13.0, 16.6, 19.3, 22.8, 24.6, 27.9, 29.6, 32.1, 35.3, 39.3}
	last := []float64{18.3, 26.2, 24.5, 25.5, 30.4, 27.8, 30.9, 37.1, 40.6, 42.5, 45.1, 50.0, 50.2, 52.6, 54.0, 57.4}
	var jobs []record.Job
	for i := range first {
		jobs = append(jobs, timed{arrived: between * float64(i), firstByte: first[i], lastByte: last[i]}.job())
	}
	m := New(start)
	changes, _ := play(m, jobs)
	require.Equal(t, []Mode{Steady, QueueGrows}, modes(changes))
	assert.Equal(t, []any{Steady, since(39)}, []any{changes[1].From, changes[1].Since})
	assert.InDelta(t, (39.3-2.51)/15, changes[1].Trend.Slope, 0.3)
	f := m.View(since(80), nil).Fleet.Windows[1].All
	assert.Equal(t, uint64(16), f.Complete)
	assert.InEpsilon(t, 39.3, f.FirstByte.P99, 0.05)
	assert.InEpsilon(t, 37.1, f.LastByte.P50, 0.05)
}

// The slopes of tables 3 and 4, from a first search of 2.5 s, with the deviation that
// the thesis reports for a single search (4.1): 0.26 s.
func TestSlopesOfTables3And4(t *testing.T) {
	for _, c := range []struct{ workers, slope float64 }{
		{8, 3.88}, {16, 2.37}, {24, 1.09}, {32, 0.51}, {40, 0.23}, {48, 0.069}, {64, 0.005},
	} {
		t.Run(fmt.Sprintf("%v workers", c.workers), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, uint64(c.workers)))
			var jobs []record.Job
			for i := range 128 {
				first := 2.5 + c.slope*float64(i) + 0.26*rng.NormFloat64()
				if first > 80 { // later searches are lost
					break
				}
				jobs = append(jobs, timed{arrived: between * float64(i), firstByte: first, lastByte: first + 20}.job())
			}
			m := New(start)
			changes, _ := play(m, jobs)
			if c.workers == 64 {
				assert.Equal(t, []Mode{Steady}, modes(changes), "it is flat")
				assert.Nil(t, m.View(since(0), nil).Fleet.DeadlineJobs)
				return
			}
			require.Equal(t, []Mode{Steady, QueueGrows}, modes(changes))
			s := m.View(since(0), nil).Fleet
			assert.InEpsilon(t, c.slope, s.Trend.Slope, 0.1)
			require.NotNil(t, s.DeadlineJobs)
			left := (80 - s.Trend.Level) / s.Trend.Slope
			assert.InEpsilon(t, max(left, 0)+1, *s.DeadlineJobs+1, 0.1)
			assert.InEpsilon(t, max(left*between+80-s.Trend.Level, 0)+1, *s.DeadlineSeconds+1, 0.1)
			assert.Contains(t, changes[1].Cause, "s a job; over the last")
		})
	}
}

// The timeout bursts of table 2: the last search with results, its time to first byte, the
// number of lost searches at that time, and the time to first byte of the next search.
func TestTimeOutBurstsOfTable2(t *testing.T) {
	type burst struct {
		last   int
		before float64
		lost   int
		after  float64
	}
	for workers, bursts := range map[int][]burst{
		8:  {{21, 84.1, 15, 68.5}, {49, 95.2, 21, 68.3}, {91, 73.1, 30, 67.5}},
		16: {{34, 83.7, 15, 64.4}, {67, 93.3, 25, 68.3}, {110, 107.5, 18, 0}},
		24: {{68, 76.3, 9, 69.0}, {100, 93.7, 10, 77.5}, {115, 80.8, 6, 73.9}},
	} {
		t.Run(fmt.Sprintf("%v workers", workers), func(t *testing.T) {
			var jobs []record.Job
			add := func(first float64, lost bool) {
				x := timed{arrived: between * float64(len(jobs)), firstByte: first, lastByte: first + 20, lost: lost}
				jobs = append(jobs, x.job())
			}
			begin := 2.5
			for _, b := range bursts {
				n := b.last - len(jobs)
				for i := range n {
					add(begin+(b.before-begin)*float64(i+1)/float64(n), false)
				}
				for range b.lost {
					add(b.before, true)
				}
				begin = b.after
			}
			for i := len(jobs); begin > 0 && i < 128; i++ {
				add(begin+float64(i%7), false)
			}
			m := New(start)
			changes, at := play(m, jobs)
			list := modes(changes)
			require.GreaterOrEqual(t, len(list), 4)
			assert.Equal(t, []Mode{Steady, QueueGrows, JobsFail, QueueGrows}, list[:4])
			assert.Subset(t, []Mode{Steady, QueueGrows, JobsFail}, list)
			losing, again := changes[2], changes[3]
			assert.Regexp(t, `^(\d+) of the \d+ jobs of the last minute failed; by outcome: deadline \d+$`, losing.Cause)
			lost := jobs[bursts[0].last]
			assert.WithinDuration(t, lost.Arrived.Add(lost.Total), at[2], 5*time.Second, "with the first lost searches")
			if again.Trend.Jobs > 0 {
				assert.Less(t, again.Trend.Jobs, 30.0, "it judges by those after the burst only")
				assert.Less(t, again.Trend.Level, bursts[1].before+5)
			}
		})
	}
}

// queue returns jobs of random size and arrival at servers that serve them in order of arrival,
// for an hour at a given load.
func queue(servers int, load float64, rng *rand.Rand) []record.Job {
	free := make([]float64, servers)
	var jobs []record.Job
	for at := 0.0; at < 3600; {
		at += rng.ExpFloat64() / (load * float64(servers))
		next := 0
		for i := range free {
			if free[i] < free[next] {
				next = i
			}
		}
		begin := max(at, free[next])
		free[next] = begin + rng.ExpFloat64()
		jobs = append(jobs, timed{arrived: at, firstByte: free[next] - at, lastByte: free[next] - at}.job())
	}
	return jobs
}

func TestStableQueueIsSteady(t *testing.T) {
	changes, _ := play(New(start), queue(16, 0.5, rand.New(rand.NewPCG(5, 0))))
	assert.Equal(t, []Mode{Steady}, modes(changes))
}

// At a load of 1.1 the mode is growing, and remains so.
func TestOverloadedQueueGrows(t *testing.T) {
	m := New(start)
	changes, at := play(m, queue(16, 1.1, rand.New(rand.NewPCG(6, 0))))
	require.Equal(t, []Mode{Steady, QueueGrows}, modes(changes))
	assert.Less(t, at[1].Sub(start), 3*time.Minute)
	// Of 17.6 arriving jobs per second, 1.6 have to wait.
	assert.InEpsilon(t, 1.6/16/17.6, m.View(since(0), nil).Fleet.Trend.Slope, 0.5)
}

// ramp returns one job per second; first gives the seconds to its first byte.
func ramp(n int, first func(i float64) float64) (jobs []record.Job) {
	for i := range n {
		f := first(float64(i))
		jobs = append(jobs, timed{arrived: float64(i), firstByte: f, lastByte: f}.job())
	}
	return jobs
}

// follow returns the trend of jobs at equal distances, with a timeout of one or two seconds, or
// none.
func follow(every, base, slope float64, order ...int) (t trend) {
	for i, at := range order {
		t.ring = append(t.ring, sample{
			arrived: since(200 + every*float64(i)).Sub(start), firstByte: since(base + slope*float64(at)).Sub(start),
			bound: time.Duration((i+1)%3) * time.Second, jobs: 1,
		})
	}
	slices.SortFunc(t.ring, func(a, b sample) int { return cmp.Compare(a.began(), b.began()) })
	return t
}

// The thresholds of a rise: values just below and just above those in the comments.
func TestThresholdsOfARise(t *testing.T) {
	for name, c := range map[string]struct {
		jobs               int
		every, base, slope float64
		want               Mode
	}{
		"a few more jobs are certain":    {11, 10, 1, 0.5, QueueGrows},
		"a few may be chance":            {10, 10, 1, 0.5, Steady},
		"half of what it leads to":       {20, 10, 2.05, 0.1, QueueGrows},
		"less than half":                 {20, 10, 2.15, 0.1, Steady},
		"three in a hundred seconds":     {20, 1, 100, 0.03, QueueGrows},
		"not as steep":                   {20, 1, 100, 0.028, Steady},
		"as much as is noticed":          {20, 10, 0, 0.0026, QueueGrows},
		"nobody notices":                 {20, 10, 0, 0.0024, Steady},
		"ten seconds, with the last one": {11, 0.5, 4.1, 0.1, QueueGrows},
		"too short":                      {11, 0.5, 3.9, 0.1, Steady},
		"later jobs overtake":            {20, 1, 100, -2, Steady},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScope(start, JobsFail)
			s.follow = follow(c.every, c.base, c.slope, slices.Sorted(slices.Values(rand.Perm(c.jobs)))...)
			mode, _ := s.next(maxAge+1, load{}) // none of the jobs has ended
			require.Equal(t, c.want, mode)
			assert.InDelta(t, c.base+c.slope*float64(c.jobs-1), s.Trend.Level, 1e-6)
			assert.InDelta(t, 1, s.Trend.Bound, 0, "the shortest of a job that has one")
		})
	}
}

func TestEndOfARise(t *testing.T) {
	level := func(level float64) trend { return follow(1, level, 0, make([]int, 8)...) }
	for name, c := range map[string]struct {
		follow trend
		seen   time.Duration // time since then
		want   Mode
	}{
		"half-way back, and calm":    {level(6), 30 * time.Second, Steady},
		"not as calm":                {level(6), 30*time.Second - 1, QueueGrows},
		"not half-way back":          {level(6.1), 30 * time.Second, QueueGrows},
		"long ago, and not back":     {level(6.1), 5 * time.Minute, Steady},
		"not as long ago":            {level(6.1), 5*time.Minute - 1, QueueGrows},
		"it may go on":               {follow(1, 0, 0.1, 7, 2, 0, 1, 3, 4, 5, 6), 30 * time.Second, QueueGrows},
		"more jobs are out of order": {follow(1, 0, 0.1, 7, 2, 1, 0, 3, 4, 5, 6), 30 * time.Second, Steady},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScope(start, JobsFail)
			s.Mode, s.follow, s.base, s.peak = QueueGrows, c.follow, 2, 10
			mode, _ := s.judge(c.seen, false)
			assert.Equal(t, c.want, mode)
		})
	}
	for fallen, late := range map[float64]bool{20: false, 22: true} { // half-way back from 32 s, and less
		changes, at := play(New(start), ramp(900, func(i float64) float64 {
			if i > 60 {
				return fallen
			}
			return 2 + 0.5*i
		}))
		require.Equal(t, []Mode{Steady, QueueGrows, Steady}, modes(changes))
		assert.Equal(t, late, at[2].Sub(start) > plateau, "to %v s", fallen)
	}
}

// The mode of lost jobs starts with one lost job in a hundred, and ends after eight complete
// jobs and ten seconds.
func TestThresholdsOfLostJobs(t *testing.T) {
	for whole, want := range map[int]Mode{297: JobsFail, 298: Unknown} {
		s := newScope(start, JobsFail)
		for i := range whole {
			if i%100 == 0 {
				s.observe(time.Minute, absent, 0)
			}
			s.observe(time.Minute, complete, 0)
		}
		mode, _ := s.next(time.Minute, load{})
		assert.Equal(t, want, mode, "%v whole", whole)
	}
	for _, c := range []struct {
		whole int
		after time.Duration
		want  Mode
	}{
		{8, 10 * time.Second, Steady}, {7, 10 * time.Second, JobsFail}, {8, 10*time.Second - 1, JobsFail},
		{1, time.Minute, Steady}, {1, time.Minute - 1, JobsFail}, {0, time.Minute, JobsFail},
	} {
		s := newScope(start, JobsFail)
		s.Mode, s.wholeRow = JobsFail, c.whole
		mode, _ := s.next(c.after, load{})
		assert.Equal(t, c.want, mode, "%v whole, after %v", c.whole, c.after)
	}
}

func TestDeadlineOfATrend(t *testing.T) {
	for trend, want := range map[Trend][]any{
		{Jobs: 11, Span: 20, latest: [2]rise{{80, 40, 2}}}:              {20.0, 80.0, true},
		{Jobs: 11, Span: 20, latest: [2]rise{{80, 40, 2}, {30, 20, 1}}}: {10.0, 10.0, true},
		{Jobs: 11, Span: 20, latest: [2]rise{{80, 40, 0.01}}}:           {0.0, 0.0, false}, // more than an hour ahead
		{Jobs: 11, Span: 20, latest: [2]rise{{80, 90, 2}}}:              {0.0, 0.0, true},
		{Jobs: 11, Span: 20, latest: [2]rise{{0, 40, 2}}}:               {0.0, 0.0, false},
		{Jobs: 11, Span: 20, latest: [2]rise{{80, 40, 0}}}:              {0.0, 0.0, false},
	} {
		jobs, after, ok := trend.deadline()
		assert.Equal(t, want, []any{jobs, after, ok})
	}
}

func TestJobsThatAreLost(t *testing.T) {
	m := New(start)
	now := 0.0
	end := func(n int, every float64, o intake.Outcome, c intake.Completeness) (changes []Change) {
		for range n {
			now += every
			if c != intake.Absent {
				m.Began(since(now-0.05), arrivedAt(since(now-0.1), 0), pool.Choice{}, nil)
			}
			j := record.Job{Outcome: o, Completeness: c, Arrived: since(now - 0.1), TTFB: 50 * time.Millisecond, Total: 100 * time.Millisecond}
			m.Ended(since(now), Default(), &j)
			changes = append(changes, m.Advance(since(now), Moment{})...)
		}
		return changes
	}
	assert.Equal(t, []Mode{Steady}, modes(end(400, 0.1, intake.Answered, intake.Complete)))
	assert.Empty(t, end(2, 0.1, intake.NoAnswer, intake.Absent), "two are not many")
	assert.Empty(t, end(50, 0.1, intake.Gone, intake.Partial), "a submitter that leaves is not lost")
	assert.Empty(t, end(50, 0.1, intake.Rejected, intake.Absent), "nor is a job that is none")
	changes := end(1, 0.1, intake.Truncated, intake.Partial)
	require.Equal(t, []Mode{JobsFail}, modes(changes))
	assert.Regexp(t, `^3 of the \d+ jobs of the last minute failed; by outcome: truncated 1, no_response 2$`, changes[0].Cause)
	assert.Empty(t, end(90, 0.1, intake.Answered, intake.Complete), "nine seconds are not ten")
	assert.Empty(t, end(1, 0.1, intake.Truncated, intake.Partial))
	assert.Empty(t, end(7, 2, intake.Answered, intake.Complete), "seven jobs are few")
	changes = end(30, 0.1, intake.Answered, intake.Complete)
	require.Equal(t, []Mode{Steady}, modes(changes))
	assert.Regexp(t, `^\d+ jobs in a row were complete, and none failed for 14s$`, changes[0].Cause)
	now += 301
	assert.Equal(t, []Mode{Unknown}, modes(m.Advance(since(now), Moment{})))
}

// With many jobs a sample stands for several jobs; with few, for one.
func TestTrendCountsTheJobsOfItsSamples(t *testing.T) {
	var tr trend
	at := time.Duration(0)
	add := func(n int, every time.Duration) {
		for range n {
			at += every
			tr.add(sample{arrived: at, firstByte: time.Second})
		}
	}
	tr.pace(6000)
	add(10_000, 10*time.Millisecond)
	got, ok := tr.at(at + time.Second)
	require.True(t, ok)
	assert.InDelta(t, 6000, got.Jobs, 100, "a minute's")
	assert.InDelta(t, 60, got.Span, 2)
	tr.pace(30)
	add(3000, 2*time.Second)
	got, ok = tr.at(at + time.Second)
	require.True(t, ok)
	assert.InDelta(t, samples, got.Jobs, 2)
	_, ok = tr.at(at + time.Second + maxAge)
	assert.False(t, ok, "what was five minutes ago says nothing of now")
}

// Rising times to first byte while cores are idle do not count as a growing queue, neither of the fleet nor
// of an upstream.
func TestNoQueueGrowsWhileCoresAreIdle(t *testing.T) {
	there := func(busy, jobs, wait float64) pool.State {
		return pool.State{Cores: 10, CoresBusy: busy, Jobs: jobs, Wait: wait}
	}
	for name, c := range map[string]struct {
		Moment
		want Mode
	}{
		"12 % busy":                          {Moment{Upstreams: []pool.State{there(1.2, 1, 0)}}, Steady},
		"four fifths busy":                   {Moment{Upstreams: []pool.State{there(8, 8, 0)}}, QueueGrows},
		"a queue":                            {Moment{Upstreams: []pool.State{there(1.2, 12, 1)}}, QueueGrows},
		"a queue beside idle cores":          {Moment{Upstreams: []pool.State{there(1, 12, 1), there(1, 1, 0)}}, Steady},
		"jobs wait in the sidecar":           {Moment{Upstreams: []pool.State{there(1, 1, 0)}, Waiting: 1}, QueueGrows},
		"its own jobs, without a report":     {Moment{Upstreams: []pool.State{there(-1, 7.9, 0)}}, Steady},
		"as many as cores, without a report": {Moment{Upstreams: []pool.State{there(-1, 8, 0)}}, QueueGrows},
		"unknown cores":                      {Moment{Upstreams: []pool.State{there(1, 1, 0), {CoresBusy: -1}}}, QueueGrows},
		"a server that is down has no cores": {Moment{Upstreams: []pool.State{there(8, 8, 0), {Cores: 90, DownSince: start}}}, QueueGrows},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScope(start, JobsFail)
			s.follow = follow(10, 2, 0.1, slices.Sorted(slices.Values(rand.Perm(20)))...)
			mode, _ := s.next(maxAge+1, c.load())
			assert.Equal(t, c.want, mode)
		})
	}
	s := newScope(start, JobsFail)
	s.Mode, s.follow, s.base, s.peak = QueueGrows, follow(1, 9, 0.1, 0, 1, 2, 3, 4, 5, 6, 7), 2, 10
	mode, cause := s.judge(calm, true)
	assert.Equal(t, []any{Steady, "cores have been idle for 30s"}, []any{mode, cause})
}
