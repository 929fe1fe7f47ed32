package selection_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/selection/policytest"
)

// naive implements Expected as documented in docs/policies.md, with sorting and searching.
type naive struct {
	selection.Expected
	job   selection.Job
	views []selection.View
	rate  func(selection.View) float64
	order []int // all views, in rendezvous order
}

func newNaive(e *selection.Expected, job selection.Job, views []selection.View) naive {
	return naive{
		Expected: *e, job: job, views: views,
		rate: func(v selection.View) float64 { return cmp.Or(v.Rate, cores(v)/service(job)) }, order: policytest.ByRendezvous(job.Project, views),
	}
}

func service(job selection.Job) float64 { return cmp.Or(job.Service, 12) }

func (n naive) warm(v selection.View) bool {
	return n.job.Project == 0 || v.Cache != selection.NotCached
}

// jobs returns the number of jobs at v, reported or estimated from the views that report.
func (n naive) jobs(v selection.View) float64 {
	if v.Fresh {
		return v.Jobs
	}
	own, all := 0.0, []float64{}
	for _, other := range n.views {
		if other.Fresh {
			own += other.InFlight
			all = append(all, other.Jobs/cores(other))
		}
	}
	if len(all) == 0 {
		return math.Max(v.Jobs, v.InFlight)
	}
	slices.Sort(all)
	own /= float64(len(all))
	estimate := all[(len(all)-1)/2] * cores(v) * math.Max(1, (v.InFlight+1)/(own+1))
	return math.Max(estimate, math.Max(v.Jobs, v.InFlight))
}

// firstCachedBelowBound returns the place of a job while too little is known of the load.
func (n naive) firstCachedBelowBound() (int, bool) {
	jobs, weights := 1.0, 0.0
	for _, v := range n.views {
		jobs += v.InFlight
		weights += v.Weight
	}
	for _, i := range n.order {
		share := 1 / float64(len(n.views))
		if weights > 0 {
			share = n.views[i].Weight / weights
		}
		if n.job.Project != 0 && n.warm(n.views[i]) && n.views[i].InFlight < math.Ceil(1.5*jobs*share) {
			return i, true
		}
	}
	return 0, false
}

func (n naive) cost(i int) selection.Cost {
	v, c := n.views[i], selection.Cost{}
	jobs, usable := n.jobs(v), cores(v)*(1-n.Spare)
	if inLine := jobs - v.Coreless; inLine >= usable {
		c.Wait = (inLine - usable + 1) / n.rate(v)
	}
	if left := v.Left / service(n.job); left > 0 && left < 1800 {
		left = math.Max(left, n.Tail)
		c.Stop = math.Max(0, n.Tail/left-n.Tail/1800) * (left*service(n.job) + n.job.Fetch)
	}
	price := n.Fetch * math.Sqrt(n.job.Fetch*service(n.job))
	if n.job.Project != 0 {
		c.Fetch = price * (1 - v.Warm)
	}
	if rank := min(slices.Index(n.order, i), 5); rank > 0 && !n.warm(v) {
		c.Placement = n.Rank * price * (1 - v.Warm) * (1 - n.job.Once) * float64(rank) * math.Max(1, n.Crowding*math.Pow(jobs/cores(v), 2))
	}
	c.Total = c.Wait + c.Fetch + c.Placement + c.Stop
	return c
}

func (n naive) pick() []float64 {
	if fresh := policytest.Where(n.views, func(v selection.View) bool { return v.Fresh }); 2*len(fresh) < len(n.views) {
		if i, ok := n.firstCachedBelowBound(); ok {
			return policytest.Evenly(len(n.views), []int{i})
		}
		if n.job.Once > 0.9 {
			return leastInFlightOracle(n.job, n.views)
		}
		return boundedHashOracle(n.job, n.views, 1.5)
	}
	total := func(i int) float64 { return n.cost(i).Total }
	least, cold := math.Inf(1), -1 // the cheapest of the cached ones, and the first cheapest of the others in order
	for _, i := range n.order {
		switch {
		case n.warm(n.views[i]):
			least = math.Min(least, total(i))
		case cold < 0 || total(i) < total(cold):
			cold = i
		}
	}
	if cold >= 0 && (math.IsInf(least, 1) || total(cold) < least) {
		return policytest.Evenly(len(n.views), []int{cold})
	}
	var cheapest []int
	for i, v := range n.views {
		if n.warm(v) && total(i) == least {
			cheapest = append(cheapest, i)
		}
	}
	return policytest.Evenly(len(n.views), policytest.Lowest(n.views, cheapest, load))
}

// thePage has the constants of docs/policies.md.
func thePage() *selection.Expected {
	return &selection.Expected{Spare: 0.2, Fetch: 0.2, Rank: 1.5, Crowding: 4.5, Tail: 0.4}
}

// expectedOracle returns the oracle for these constants.
func expectedOracle(e *selection.Expected) policytest.Oracle {
	return func(job selection.Job, views []selection.View) []float64 { return newNaive(e, job, views).pick() }
}

// withoutParts sets some constants to 0 at random.
func withoutParts(rng *rand.Rand) *selection.Expected {
	e := selection.DefaultExpected()
	for _, constant := range []*float64{&e.Spare, &e.Fetch, &e.Rank, &e.Crowding, &e.Tail} {
		if rng.IntN(4) == 0 {
			*constant = 0
		}
	}
	return e
}

// TestExpectedWithoutParts compares with the oracle, with parts of the policy switched off.
func TestExpectedWithoutParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	for range 8000 {
		policy := withoutParts(rng)
		job, views := policytest.Case(rng)
		got := policy.Pick(job, views, rng)
		want := expectedOracle(policy)(job, views)
		require.NotZero(t, want[got], "picked %d for %+v of %+v by %+v", got, job, views, policy)
	}
}

// costsOf returns the total costs of the views.
func costsOf(policy selection.Coster, job selection.Job, views []selection.View) []selection.Cost {
	costs := make([]selection.Cost, len(views))
	policy.PickWithCosts(job, views, costs, rand.New(rand.NewPCG(1, 1)))
	return costs
}

// TestExpectedCosts compares each part of every view's cost with the oracle's.
func TestExpectedCosts(t *testing.T) {
	rng := rand.New(rand.NewPCG(51, 52))
	for range 4000 {
		policy := withoutParts(rng)
		job, views := policytest.Case(rng)
		n := newNaive(policy, job, views)
		for i, got := range costsOf(policy, job, views) {
			want := n.cost(i)
			for _, c := range [][2]float64{
				{want.Total, got.Total}, {want.Wait, got.Wait}, {want.Fetch, got.Fetch},
				{want.Placement, got.Placement}, {want.Stop, got.Stop},
			} {
				require.InDelta(t, c[0], c[1], 1e-9*(1+math.Abs(c[0])), "want %+v, got %+v for %+v", want, got, views[i])
			}
		}
	}
}
