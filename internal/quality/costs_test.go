package quality

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

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
	for _, projects := range []int{3, listedCosts, 400, 20 * keptCosts} {
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
			require.LessOrEqual(t, len(c.now.projects), 2*keptCosts)
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
