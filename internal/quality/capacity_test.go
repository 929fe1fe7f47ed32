package quality

import (
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
)

// Ten minutes that need 2 cores, and one minute that needs 30.
func TestAdvice(t *testing.T) {
	load := slices.Concat(slices.Repeat([]float64{2}, 600), slices.Repeat([]float64{30}, 60)) // each second's cores
	load[0] = 100                                                                             // a peak of one second is averaged over a minute
	var jobs []float64
	for _, cores := range load {
		jobs = append(jobs, cores/2)
	}
	fleet := Fleet{Upstreams: 20, Cores: 20}
	a := Advise(fleet, time.Second, jobs, load)
	require.NotNil(t, a)
	assert.Equal(t, fleet, a.Fleet)
	assert.Equal(t, []float64{2, 10, 660}, []float64{a.CoreSecondsPerJob, a.JobsPerSecond, a.CoveredSeconds})
	assert.Equal(t, []float64{1.5, 1.5}, []float64{a.Full, a.FullBusiest})
	assert.Equal(t, 43, a.Needed, "30 cores and 2.33 times their root are 42.8")

	load = append(load, slices.Repeat([]float64{5}, 60)...)
	a = Advise(fleet, time.Second, load, load)
	require.NotNil(t, a)
	assert.Equal(t, []float64{0.25, 1.5}, []float64{a.Full, a.FullBusiest}, "the busiest minute is over")
}

func TestAdviceNeedsJobsAndCores(t *testing.T) {
	full := []float64{1}
	for _, c := range []struct {
		load  []float64
		fleet Fleet
	}{
		{nil, Fleet{2, 8}}, {full, Fleet{0, 8}}, {full, Fleet{2, 0}}, {full, Fleet{2, math.NaN()}},
	} {
		assert.Nil(t, Advise(c.fleet, time.Second, c.load, c.load))
	}
	a := Advise(Fleet{1, 4}, time.Second, full, full)
	require.NotNil(t, a)
	assert.Equal(t, 1, a.Needed)
	assert.Equal(t, 0.25, a.Full, "a load of a second has no minute: it counts as it is")
}

func cores(n int, busy, rate float64) pool.State {
	return pool.State{Cores: n, CoresBusy: busy, Rate: rate}
}

func TestFleetCountsUpstreamsThatTakeJobs(t *testing.T) {
	draining, drained := cores(64, 0, 0), cores(64, 0, 0)
	draining.Draining, drained.Drained = true, true
	assert.Equal(t, Fleet{Upstreams: 3, Cores: 18}, fleetOf([]pool.State{cores(8, 1, 0), cores(4, 0, 0), cores(0, -1, 0), draining, drained}))
	assert.Equal(t, Fleet{Upstreams: 1}, fleetOf([]pool.State{cores(0, -1, 0)}))
	assert.Equal(t, Fleet{}, fleetOf(nil))
}

// Demand is the busy cores, plus what rising times and lost jobs show of the load beyond that.
func TestDemand(t *testing.T) {
	m := New(start)
	demand := func(states ...pool.State) []float64 {
		cores, jobs := m.demand(step, states)
		return []float64{cores, jobs}
	}
	draining, drained := cores(8, 8, 8), cores(8, 8, 8)
	draining.Draining, drained.Drained = true, true
	assert.Equal(t, []float64{9, 5}, demand(cores(8, 6, 4), cores(4, 3, 2.6666666666666665), cores(0, -1, 9), cores(0, 1, 9), draining, drained))
	plain := pool.State{Cores: 8, CoresBusy: -1, Jobs: 3}
	assert.Equal(t, []float64{3, 0}, demand(plain), "no report: a core for each job that is there")
	for range 600 {
		m.fleet.observe(0, complete, 0)
	}
	assert.Equal(t, []float64{3, 60}, demand(cores(8, 3, 0)), "the upstreams do not report jobs: these are the sidecar's own")
	for range 600 {
		m.fleet.observe(0, absent, 0)
	}
	m.fleet.Trend = Trend{Jobs: 100, Span: 50, Slope: 0.1}
	assert.Equal(t, []float64{7, 7}, demand(cores(8, 7, 8)), "the fleet copes")
	m.fleet.Mode = JobsFail
	assert.Equal(t, []float64{14, 14}, demand(cores(8, 7, 8)), "half is lost: twice as much came")
	assert.Equal(t, []float64{6, 6}, demand(cores(8, 6, 8)), "where a quarter of the cores are idle, jobs are lost for another reason")
	m.fleet.Mode = QueueGrows
	assert.InDeltaSlice(t, []float64{9.6, 9.6}, demand(cores(8, 8, 8)), 1e-9)
	m.fleet.Trend.Span = 0
	assert.Equal(t, []float64{8, 8}, demand(cores(8, 8, 8)), "all came at one instant")
	m = New(start)
	m.fleet.observe(0, absent, 0)
	m.fleet.Mode = JobsFail
	assert.Equal(t, []float64{8, 8}, demand(cores(8, 8, 8)), "where all are lost, nobody knows how many came")
}

// 20 cores that jobs of 2 s keep busy need 21 to 29 upstreams of one core, depending on the target; prices
// are per upstream and hour. By Erlang C, 30 % of jobs wait for one of 24 cores, and a share of exp(-4 t / 2 s) of them
// waits longer than t.
func TestPlan(t *testing.T) {
	load, jobs := slices.Repeat([]float64{20}, 600), slices.Repeat([]float64{10}, 600)
	for wait, want := range map[time.Duration]int{time.Hour: 21, 5 * time.Second: 22, time.Second: 24, time.Millisecond: 29} {
		a := Advise(Fleet{Upstreams: 20, Cores: 20}, time.Second, jobs, load)
		a.Plan(Settings{Target: Target{WaitP95: wait}, UpstreamPrice: 3})
		assert.Equal(t, want, *a.ForTarget, "%v", wait)
		assert.InEpsilon(t, 3*20./3600/10, *a.CostPerJob, 1e-9)
	}
	a := Advise(Fleet{Upstreams: 20, Cores: 20}, time.Second, jobs, load)
	a.Plan(Default())
	assert.Equal(t, []any{(*int)(nil), (*float64)(nil)}, []any{a.ForTarget, a.CostPerJob})
}

func TestBacklogImbalance(t *testing.T) {
	for _, c := range []struct {
		stalled []float64 // negative: the upstream has not reported
		want    float64
	}{
		{nil, -1},
		{[]float64{-1}, -1},
		{[]float64{10, 10, -1}, 0},
		{[]float64{30, 0, 0}, 2},
		{[]float64{1, 0, 0}, 2.0 / 3},
	} {
		var v View
		for _, stalled := range c.stalled {
			v.Upstreams = append(v.Upstreams, Upstream{State: pool.State{Stalled: stalled, ReportAge: min(0, stalled)}})
		}
		got, ok := v.BacklogImbalance()
		assert.Equal(t, c.want >= 0, ok, c.stalled)
		assert.InDelta(t, max(0, c.want), got, 1e-9, c.stalled)
	}
}

// queued returns the jobs that arrive at these times at a fleet with this number of slots, served in order of arrival. Each occupies a slot for takes seconds.
func queued(arrivals []float64, slots int, takes float64) (jobs []record.Job) {
	free := make([]float64, slots)
	for _, at := range arrivals {
		slices.Sort(free)
		free[0] = max(free[0], at) + takes
		jobs = append(jobs, timed{arrived: at, firstByte: free[0] - at, lastByte: free[0] - at}.job())
	}
	return jobs
}

// Upstreams that report no cores: four with two or four slots each, ten minutes at half of what they can do, and then two at 1.5 times that.
func TestCapacityWithoutCores(t *testing.T) {
	const takes, upstreams = 4.0, 4
	states := make([]pool.State, upstreams)
	for _, slots := range []int{8, 16} {
		can, m := float64(slots)/takes, New(start)
		var arrivals []float64
		at := 0.0
		for ; at < 600; at += 2 / can {
			arrivals = append(arrivals, at)
		}
		steadily := queued(arrivals, slots, takes)
		for ; at < 720; at += 1 / can / 1.5 {
			arrivals = append(arrivals, at)
		}
		play(m, steadily)
		a := m.View(since(605), states).Capacity
		require.NotNil(t, a)
		assert.True(t, a.NeverFull, "nobody knows what they could do")
		assert.InEpsilon(t, float64(slots)/2, a.Cores, 0.1, "at least the slots that were taken")
		assert.InEpsilon(t, takes, a.CoreSecondsPerJob, 0.1)
		assert.Equal(t, upstreams, a.Needed, "no more are needed")
		assert.InDelta(t, 1, a.FullBusiest, 0.1)
		a.Plan(Settings{Target: Target{WaitP95: time.Second}, UpstreamPrice: 3})
		assert.Nil(t, a.ForTarget, "that depends on what is not known")
		assert.InEpsilon(t, 3.0*upstreams/3600/(can/2), *a.CostPerJob, 0.1)

		m = New(start)
		changes, _ := play(m, queued(arrivals, slots, takes))
		require.Contains(t, modes(changes), QueueGrows)
		a = m.View(since(725), states).Capacity
		require.NotNil(t, a)
		assert.False(t, a.NeverFull)
		assert.InEpsilon(t, float64(slots), a.Cores, 0.15, "what they completed while the queue grew")
		assert.InEpsilon(t, can, a.JobsPerSecond, 0.15)
		assert.InDelta(t, 1.5, a.FullBusiest, 0.3)
		demand := 1.5 * float64(slots)
		assert.InEpsilon(t, (demand+headroom*math.Sqrt(demand))*upstreams/float64(slots), float64(a.Needed), 0.25)
	}
	assert.Nil(t, New(start).View(since(60), states).Capacity, "no job was seen")
}

// costOf returns a job of a project with these times of waiting and running at its upstream.
func costOf(project string, waited, took time.Duration) *record.Job {
	j := &record.Job{Facts: intake.Facts{Project: project}, Total: waited + took + time.Second, Completeness: intake.Complete}
	j.Attempts = append(j.Attempts, record.Attempt{Start: time.Second, Outcome: pool.Answered, Hint: &pool.Hint{Waited: waited}})
	return j
}

// The costs of projects equal naive sums over the present and the previous period. If there are many projects, the busiest
// are listed, and the rest is summed.
func TestCostsAgainstNaiveSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 7))
	for _, projects := range []int{3, listedCosts, 400, 3 * mostCosts} {
		var c costs
		var sums [2]map[string]ProjectCost
		for now := time.Duration(0); now < 4*costPeriod; now += costPeriod / 10_000 {
			if sums[0] == nil || now%costPeriod == 0 {
				sums[0], sums[1] = map[string]ProjectCost{}, sums[0]
			}
			rank := int(float64(projects) * rng.Float64() * rng.Float64() * rng.Float64())
			name := fmt.Sprint("p", rank)
			took := time.Duration(rng.Int64N(int64(2*time.Second)) / int64(1+rank))
			c.add(now, costOf(name, time.Minute, took))
			sum := sums[0][name]
			sum.merge(ProjectCost{Jobs: 1, UpstreamSeconds: took.Seconds()})
			sums[0][name] = sum
			require.LessOrEqual(t, len(c.now.projects), mostCosts)
		}
		want := map[string]ProjectCost{}
		var total ProjectCost
		for _, period := range sums {
			for name, one := range period {
				total.merge(one)
				one.merge(want[name])
				want[name] = one
			}
		}
		most, others := busiest(want, listedCosts)
		list, all := c.list()
		if others.Jobs > 0 {
			require.Len(t, list, listedCosts+1)
			rest := list[listedCosts]
			assert.Equal(t, []any{true, "", others.Jobs}, []any{rest.Rest, rest.Project, rest.Jobs})
			assert.InEpsilon(t, others.UpstreamSeconds, rest.UpstreamSeconds, 1e-6)
			list = list[:listedCosts]
		}
		require.Len(t, list, len(most))
		for i, one := range list {
			assert.Equal(t, []any{most[i].Project, most[i].Jobs, false}, []any{one.Project, one.Jobs, one.Rest})
			assert.InEpsilon(t, most[i].UpstreamSeconds, one.UpstreamSeconds, 1e-6)
		}
		assert.Equal(t, total.Jobs, all.Jobs)
		assert.InEpsilon(t, total.UpstreamSeconds, all.UpstreamSeconds, 1e-6)
	}
	var c costs
	c.add(time.Hour, costOf("a", 0, time.Second))
	c.add(time.Hour+3*costPeriod, costOf("b", 0, time.Second))
	list, _ := c.list()
	require.Len(t, list, 1, "what was hours ago does not count")
}

// A job's time at an upstream starts with its execution, or with its last attempt if the wait is unknown.
func TestTimeAtUpstreams(t *testing.T) {
	j := costOf("p", 3*time.Second, 5*time.Second)
	assert.Equal(t, 5*time.Second, atUpstream(j))
	j.Attempts[0].Hint = nil
	assert.Equal(t, 8*time.Second, atUpstream(j))
	j.Attempts = nil
	assert.Zero(t, atUpstream(j), "it waited in the sidecar")
}

// Two upstreams for 3 an hour each do 8 jobs a second; one of them is this sidecar's. A project with a tenth of the jobs, of nine times the time, costs as much as the other.
func TestCostOfAProject(t *testing.T) {
	m := New(start)
	states := []pool.State{cores(8, 4, 8), cores(8, 4, 8)}
	for i := range 1000 {
		now := since(float64(i))
		m.Advance(now, Moment{Upstreams: states})
		if i%10 == 0 {
			m.Ended(now, Default(), costOf("large", 0, 9*time.Second))
		} else {
			m.Ended(now, Default(), costOf("small", 0, time.Second))
		}
	}
	a := m.View(since(1000), states).Capacity
	a.Plan(Default())
	assert.Nil(t, a.ProjectCosts, "without a price")
	a.Plan(Settings{UpstreamPrice: 3})
	require.Len(t, a.ProjectCosts, 2)
	each := *a.CostPerJob * 1000 / 2
	for i, want := range []ProjectCost{{Project: "large", Jobs: 100, UpstreamSeconds: 900}, {Project: "small", Jobs: 900, UpstreamSeconds: 900}} {
		got := a.ProjectCosts[i]
		assert.InEpsilon(t, each, got.Cost, 1e-9)
		got.Cost = 0
		assert.Equal(t, want, got)
	}
}
