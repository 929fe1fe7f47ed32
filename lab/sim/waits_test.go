package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// One project floods a fleet that others keep a third busy, or three quarters. Where short jobs go first, and projects
// with few jobs, the others wait less than by arrival. With at most a quarter of each sidecar's jobs in flight while no
// core is free, they wait less than half of that, or a quarter, and none is lost, with one sidecar and with four. Each may
// always have one job of the project in flight. Jobs are not interrupted: where the flood keeps
// all cores busy, no order of one queue before all cores lets others wait less than the bound (Cobham, Priority
// Assignment in Waiting Line Problems, 1954, for jobs of exponential lengths).
func TestFlood(t *testing.T) {
	const servers, cores, work, length = 4, 4, 2.0, 400.0
	wait := func(load float64, flood bool, order string, limit float64, sidecars int) (others, lost float64) {
		rng := rand.New(rand.NewPCG(17, 18))
		var jobs []trace.Job
		add := func(from, to, load float64, project func() string) {
			for at := from; at < to; at += rng.ExpFloat64() * work / (load * servers * cores) {
				jobs = append(jobs, trace.Job{
					Offset: at, Project: trace.Project(project()), Load: 1, Bytes: 25e6, Operators: rng.ExpFloat64() * work,
					Submitter: rng.Int64N(1000), Timeouts: trace.Timeouts{Queue: 240},
				})
			}
		}
		add(0, length, load, func() string { return string('a' + rune(rng.IntN(20))) })
		if flood {
			add(100, 200, 2, func() string { return "flood" })
		}
		slices.SortStableFunc(jobs, func(a, b trace.Job) int { return cmp.Compare(a.Offset, b.Offset) })
		c := setup(t, "expected", "none", servers, cores)
		c.Fleet.Order, c.Sidecars.Count, c.Sidecars.Hints = order, sidecars, true
		c.Sidecars.Projects.Limit, c.WarmUp = limit, 60*time.Second
		n := 0.0
		run(t, c, slices.Values(jobs), func(r *Result) {
			if r.Project == intake.Key("flood") {
				return
			}
			n++
			others += r.Wait.Seconds()
			if r.Outcome != Done {
				lost++
			}
		})
		return others / n, lost
	}
	for load, less := range map[float64]float64{0.35: 1.5, 0.75: 4} {
		bound := work / (servers * cores) / (1 - load)
		for _, sidecars := range []int{1, 4} {
			before, _ := wait(load, false, expected, 0, sidecars)
			byArrival, _ := wait(load, true, arrival, 0, sidecars)
			without, _ := wait(load, true, expected, 0, sidecars)
			with, lost := wait(load, true, expected, 0.25, sidecars)
			t.Logf("others' load %v, %d sidecars: they wait %.2f s before the flood, %.1f s in it by arrival, %.1f s by expected length, "+
				"and %.2f s with the limit; the bound is %.2f s", load, sidecars, before, byArrival, without, with, bound)
			assert.Less(t, without, byArrival/2)
			assert.Less(t, with, without/less)
			assert.Zero(t, lost)
		}
	}
}

// Where the channels of a project differ, sidecars that know the channel let upstreams distinguish short jobs from long ones:
// jobs wait less than with one expected duration per project, also with several sidecars that each see a part of the jobs.
func TestLengthsByChannel(t *testing.T) {
	const servers, n, seeds = 4, 4000, 3
	for _, sidecars := range []int{1, 8} {
		waits := map[bool]float64{}
		for seed := range uint64(seeds) {
			rng := rand.New(rand.NewPCG(seed, 505))
			var jobs []trace.Job
			for at := 0.0; len(jobs) < n; at += rng.ExpFloat64() / (0.85 * servers) {
				channel := 1 + rng.Int64N(4)
				jobs = append(jobs, trace.Job{
					Offset: at, Project: trace.Project('a' + rune(rng.IntN(8))), Channel: channel, Load: 0.02, Bytes: 500_000,
					Operators: []float64{0.1, 0.2, 0.5, 3.2}[channel-1] * (0.5 + rng.Float64()),
					Submitter: rng.Int64N(1000), Timeouts: trace.Timeouts{Queue: 240},
				})
			}
			for _, keyed := range []bool{false, true} {
				c := setup(t, "least-in-flight", "none", servers, 1)
				c.Fleet.Order, c.Sidecars.Count, c.Sidecars.Hints, c.Sidecars.LengthKey = expected, sidecars, true, keyed
				run(t, c, slices.Values(jobs), func(r *Result) { waits[keyed] += r.Wait.Seconds() / n / seeds })
			}
		}
		t.Logf("%d sidecars: jobs wait %.2f s by project, %.2f s by channel", sidecars, waits[false], waits[true])
		assert.Less(t, waits[true], 0.8*waits[false])
	}
}

// A copy is sent to an idle upstream, and the attempt that ends first counts. If no upstream is idle, there is no
// copy.
func TestHedges(t *testing.T) {
	cfg := setup(t, "least-in-flight", "none", 2, 1)
	cfg.Sidecars.Hedge = true
	cfg.Fleet.Unlike = Unlike{Upstreams: 1, Cores: 1, Speed: 10}
	var ends []time.Duration
	jobs := []trace.Job{{Operators: 10}, {Offset: 0.5, Operators: 10}, {Offset: 30, Operators: 10}}
	totals := run(t, cfg, slices.Values(jobs), func(r *Result) {
		require.Equal(t, Done, r.Outcome)
		ends = append(ends, r.Arrived+r.LastByte)
	})
	assert.Equal(t, 2, totals.Hedged, "the second job finds no idle upstream")
	assert.Equal(t, 3, totals.Ended)
	assert.Zero(t, totals.InFlight)
	assert.Equal(t, []time.Duration{time.Second, 31 * time.Second}, []time.Duration{ends[0], ends[2]}, "at the fast one")
}

// If the server of one copy stops, the other copy replaces the job: it is not sent again.
func TestAHedgedCopySurvives(t *testing.T) {
	cfg := setup(t, "least-in-flight", "none", 2, 1)
	cfg.Sidecars.Hedge = true
	cfg.Fleet.Stops = Stops{First: 5 * time.Second, Every: time.Hour, Away: time.Minute}
	totals := run(t, cfg, slices.Values([]trace.Job{{Operators: 10}}), func(r *Result) {
		assert.Equal(t, Done, r.Outcome)
		assert.Equal(t, 10*time.Second, r.LastByte)
	})
	assert.Equal(t, []int{1, 1}, []int{totals.Hedged, totals.Ended})
	assert.Zero(t, totals.InFlight)
}

// A person sends a job again after 3 s, and gives up after the second attempt. The wait counts from the
// first.
func TestImpatience(t *testing.T) {
	cfg := setup(t, "random", "none", 1, 1)
	cfg.Sidecars.Leave, cfg.Sidecars.Again = 3*time.Second, 1
	high := func(offset float64) trace.Job {
		return trace.Job{Offset: offset, Operators: 1, Output: 1, Priority: selection.High, Timeouts: trace.Timeouts{Queue: 60}}
	}
	got := played(t, cfg, trace.Job{Operators: 6}, high(1), trace.Job{Offset: 10, Operators: 20}, high(11))
	assert.Equal(t, Done, got[2].Outcome)
	assert.Equal(t, []time.Duration{5 * time.Second, 6 * time.Second, 7 * time.Second}, []time.Duration{got[2].Wait, got[2].FirstByte, got[2].LastByte})
	assert.Equal(t, Left, got[4].Outcome)
	assert.Equal(t, time.Minute, got[4].Wait, "it waited as long as it may")
	assert.Equal(t, 6*time.Second, got[4].LastByte)
	assert.Equal(t, Done, got[3].Outcome)
}

// Jobs wait less if upstreams withdraw waiting jobs for idle ones. Each job ends once, also if an upstream hangs, if
// upstreams restart, and if people give up.
func TestWithdrawnJobs(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var jobs []trace.Job
	for at := 0.0; len(jobs) < 3000; at += 0.4 * rng.ExpFloat64() {
		project := string(rune('a' + int(30*rng.Float64()*rng.Float64())))
		jobs = append(jobs, trace.Job{
			Offset: at, Project: trace.Project(project), Submitter: int64(len(jobs) % 3), Priority: selection.Priority(len(jobs) % 5 / 4),
			Load: 1, Operators: 4 * rng.ExpFloat64(), Bytes: 1,
		})
	}
	for name, c := range map[string]struct {
		change func(*Config)
		whole  bool // all jobs have ended
	}{
		"all is well": {func(*Config) {}, true},
		"one hangs": {func(c *Config) {
			c.Fleet.Fault = fault(hung, func(f *Fault) { f.At, f.For = 300*time.Second, 200*time.Second })
		}, false},
		"rolling restart": {func(c *Config) {
			c.Fleet.Stops = Stops{First: 200 * time.Second, Every: time.Minute, Away: 20 * time.Second}
		}, false},
		"impatience": {func(c *Config) { c.Sidecars.Leave, c.Sidecars.Again = 10*time.Second, 2 }, false},
	} {
		waits := map[bool]time.Duration{}
		for _, withdraw := range []bool{false, true} {
			cfg := setup(t, "expected", "none", 4, 3)
			cfg.Sidecars.Count, cfg.Sidecars.Hints, cfg.Sidecars.Withdraw = 3, true, withdraw
			c.change(&cfg)
			ended := map[int64]bool{}
			totals := run(t, cfg, slices.Values(jobs), func(r *Result) {
				require.False(t, ended[r.Number])
				ended[r.Number] = true
				waits[withdraw] += r.Wait + r.Stalled
				if c.whole {
					require.Equal(t, Done, r.Outcome)
				}
			})
			assert.Len(t, ended, len(jobs))
			assert.Zero(t, totals.InFlight)
			assert.Equal(t, []bool{withdraw, withdraw}, []bool{totals.Withdrawn > 10, totals.Refused > 10}, "%s: %d withdrawn, %d refused", name, totals.Withdrawn, totals.Refused)
			t.Logf("%s: %v: %v, %d withdrawn, %d refused", name, withdraw, waits[withdraw]/time.Duration(len(jobs)), totals.Withdrawn, totals.Refused)
		}
		assert.Less(t, waits[true], waits[false], name)
	}
}
