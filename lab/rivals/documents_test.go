package rivals

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/selection/policytest"
)

// Four controllers share the slots of eight invokers. Each has a quarter of the slots, continues with the next invoker if
// its slots are taken, and forces a random invoker if all are.
func TestHomeStepSharesSlots(t *testing.T) {
	views, rng := policytest.Idle(8), rand.New(rand.NewPCG(1, 1))
	policy := HomeStep{}.ForSidecar(4)
	var visited []int
	for range 8 {
		at := policy.Pick(selection.Job{Project: 7}, views, rng)
		require.NotContains(t, visited, at)
		visited = append(visited, at)
		views[at].InFlight = 2*coresOf(&views[at])/4 - 1
		require.Equal(t, at, policy.Pick(selection.Job{Project: 7}, views, rng), "a slot is left")
		views[at].InFlight++
	}
	counts := make([]int, 8)
	for range 4000 {
		counts[policy.Pick(selection.Job{Project: 7}, views, rng)]++
	}
	require.NoError(t, policytest.Spread(counts, slices.Repeat([]float64{1.0 / 8}, 8)))
}

// A quarter of the jobs is high. Of ten upstreams three are masters. The high jobs alone keep the masters at 5/6 of the
// mean utilisation, so a fifteenth of the low jobs fills them. Without the reservation, low jobs go to the upstream with
// the least stretch.
func TestMasterSlave(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	play := func(reserved bool) (highOut, lowIn float64) {
		views := policytest.Idle(10)
		policy := MasterSlave{Sampled: true, Reserved: reserved}.ForSidecar(1)
		for n := range 8000 {
			high := n%4 == 0
			job := selection.Job{Project: uint64(n), Service: 1, Fetch: 1}
			if high {
				job.Priority = selection.High
			}
			at := policy.Pick(job, views, rng)
			switch {
			case n < 4000: // it learns the share of high jobs
			case high && at >= 3:
				highOut++
			case !high && at < 3:
				lowIn++
			}
		}
		return highOut, lowIn / 3000
	}
	highOut, lowIn := play(true)
	assert.Zero(t, highOut, "high jobs stay at the masters")
	assert.InDelta(t, (0.3-0.25)/0.75, lowIn, 0.02)
	_, lowIn = play(false)
	assert.InDelta(t, 0.3, lowIn, 0.03)
	master, theta := (&MasterSlave{high: 0.99}).split(4)
	assert.Equal(t, []float64{3, 0}, []float64{float64(master), theta}, "one slave is left")
}

// Half of the jobs are high. Low jobs can use half of the cores, and go to upstreams where
// others are free.
func TestReserve(t *testing.T) {
	rng, views := rand.New(rand.NewPCG(3, 3)), policytest.Idle(2)
	for i := range views {
		views[i].Cores, views[i].Rate, views[i].Fresh = 8, 8, true
	}
	views[0].Cache, views[0].Warm, views[0].Jobs = selection.Cached, 1, 7
	policy := Reserve{}.ForSidecar(1)
	low := selection.Job{Project: 1, Service: 1, Fetch: 1}
	high := low
	high.Priority = selection.High
	assert.Equal(t, 0, policy.Pick(low, views, rng))
	for range 400 {
		require.Equal(t, 0, policy.Pick(high, views, rng))
		policy.Pick(low, views, rng)
	}
	assert.Equal(t, 1, policy.Pick(low, views, rng), "seven jobs are too many for the four cores it sees")
	assert.Equal(t, 8.0, views[0].Cores)
}

// A high job goes where its data is cached, although many low jobs wait there. With expected, it goes
// elsewhere.
func TestHighFirst(t *testing.T) {
	views := policytest.Idle(2)
	views[0].Cache, views[0].Warm, views[0].Jobs, views[0].Overtaken = selection.Cached, 1, views[0].Cores+100, 100
	job := selection.Job{Project: 1, Priority: selection.High, Fetch: 500}
	for name, want := range map[string]int{"expected": 1, "high-first": 0} {
		policy, err := New(name)
		require.NoError(t, err)
		assert.Equal(t, want, policy.Pick(job, views, nil), name)
	}
}

// The projects of the plan have one upstream each, and equal work. Other projects, and those whose upstream has left, go to
// any.
func TestPlan(t *testing.T) {
	var jobs []trace.Job
	for project := range 12 {
		for range 1 + project%3 {
			jobs = append(jobs, trace.Job{Project: trace.Project(strconv.Itoa(1 + project)), Load: 50, Operators: 2})
		}
	}
	addresses, views := []string{"a", "b", "c"}, policytest.Idle(3)
	for i := range views {
		views[i].ID = selection.UpstreamID(addresses[i])
	}
	plan, rng, work := new(Plan), rand.New(rand.NewPCG(4, 4)), [3]float64{}
	plan.Know(slices.Values(jobs), addresses)
	for project := range uint64(12) {
		job := selection.Job{Project: intake.Key(strconv.FormatUint(1+project, 10))}
		at := plan.Pick(job, views, rng)
		work[at] += float64(1 + project%3)
		require.Equal(t, at, plan.Pick(job, views, rng))
	}
	assert.Equal(t, [3]float64{8, 8, 8}, work)
	counts := make([]int, 3)
	for range 3000 {
		counts[plan.Pick(selection.Job{Project: 99}, views, rng)]++
	}
	require.NoError(t, policytest.Spread(counts, slices.Repeat([]float64{1.0 / 3}, 3)))
}

// While waits exceed the target of 10 s, thresholds fall; while they are below it, they rise, within
// bounds.
func TestBreakersFollowWaits(t *testing.T) {
	s := overload.Default()
	for _, c := range []struct {
		policy        string
		stalled, wait float64
		reports       int
		want          overload.Level
	}{
		{"adaptive", 99, 1, 1, 1},
		{"adaptive", 103, 1, 1, 0},
		{"adaptive", 103, 1, 3, 1}, // the threshold has risen to 106
		{"adaptive", 390, 1, 200, 1},
		{"adaptive", 410, 1, 200, 0},
		{"adaptive", 60, 20, 6, 0},
		{"adaptive", 9, 20, 100, 1},
		{"adaptive", 60, math.NaN(), 6, 1},
		{"breakwater", 100, 1, 1, 1},
		{"breakwater", 101, 1, 1, 0},
		{"breakwater", 110, 1, 20, 1},
		{"breakwater", 60, 1000, 1, 0},
		{"breakwater", 60, 20, 10, 1},
		{"breakwater", 60, 20, 30, 0},
		{"breakwater", 0, 1e6, 100, 1},
		{"threshold", 101, 1, 1, 0},
	} {
		s.Policy = c.policy
		detector, err := NewDetector(s)
		require.NoError(t, err)
		detect, level := detector(), overload.Level(0)
		for range c.reports - 1 { // without backlog
			detect(overload.Sample{Wait: c.wait})
		}
		level = detect(overload.Sample{Stalled: c.stalled, Wait: c.wait})
		assert.Equal(t, c.want, level, "%+v", c)
	}
}
