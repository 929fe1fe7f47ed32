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

// known returns the views with a fresh report.
func (n naive) known() []int {
	return policytest.Where(n.views, func(v selection.View) bool { return v.Fresh })
}

func (n naive) blind() bool { return 2*len(n.known()) < len(n.views) }

// jobs returns the number of jobs at v, reported or estimated from the views that report, or from this sidecar's jobs alone.
func (n naive) jobs(v selection.View) float64 {
	if v.Fresh {
		return v.Jobs
	}
	own, weights, all := 0.0, 0.0, []float64{}
	for _, other := range n.views {
		if other.Fresh || n.blind() {
			own += other.InFlight
			weights += math.Max(other.Weight, 1e-9)
		}
		if other.Fresh {
			all = append(all, other.Jobs/cores(other))
		}
	}
	perCore := 0.7
	if slices.Sort(all); !n.blind() {
		perCore = all[(len(all)-1)/2]
	}
	estimate := perCore * cores(v) * math.Max(1, (load(v)+1)/(own/weights+1))
	return math.Max(estimate, math.Max(v.Jobs, v.InFlight))
}

func (n naive) cost(i int) selection.Cost {
	v, c := n.views[i], selection.Cost{}
	jobs, usable := n.jobs(v), cores(v)*(1-n.Headroom)
	if inLine := jobs - v.BlockedJobs; inLine >= usable {
		c.Wait = (inLine - usable + 1) / n.rate(v)
	}
	if left := v.UntilStop / service(n.job); left > 0 && left < 1800 {
		left = math.Max(left, n.Tail)
		c.Stop = math.Max(0, n.Tail/left-n.Tail/1800) * (left*service(n.job) + n.job.Fetch)
	}
	price := n.Fetch * math.Sqrt(n.job.Fetch*service(n.job))
	if n.job.Project != 0 {
		c.Fetch = price * (1 - v.Warm)
	}
	if rank := n.rank(i); rank > 0 && !n.warm(v) {
		c.Placement = n.Rank * price * (1 - v.Warm) * (1 - n.job.OneOffProbability) * rank * math.Max(1, n.Crowding*math.Pow(jobs/cores(v), 2))
	}
	c.Total = c.Wait + c.Fetch + c.Placement + c.Stop
	return c
}

// rank returns the place of view i among those that do not have the project cached, and adds the price of a copy beside others.
func (n naive) rank(i int) float64 {
	uncached := policytest.Where(n.views, func(v selection.View) bool { return !n.warm(v) })
	before := n.order[:slices.Index(n.order, i)]
	rank := 0
	for _, other := range before {
		if slices.Contains(uncached, other) {
			rank++
		}
	}
	if len(uncached) < len(n.views) {
		return float64(min(rank, 5)) + 3/(3+n.job.Open)
	}
	return float64(min(rank, 5))
}

func (n naive) pick() []float64 {
	if n.blind() && n.job.OneOffProbability > 0.9 {
		return leastInFlightOracle(n.job, n.views)
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

// requireChoice requires that the rule picks this view, or that its cost differs from that of the cheapest only by rounding.
func (n naive) requireChoice(t *testing.T, got int) {
	t.Helper()
	if n.pick()[got] > 0 {
		return
	}
	least := math.Inf(1)
	for i := range n.views {
		least = min(least, n.cost(i).Total)
	}
	require.InEpsilon(t, least, n.cost(got).Total, 1e-9, "picked %d for %+v of %+v by %+v", got, n.job, n.views, n.Expected)
}

// thePage has the constants of docs/policies.md.
func thePage() *selection.Expected {
	return &selection.Expected{Headroom: 0.2, Fetch: 0.2, Rank: 1.5, Crowding: 4.5, Tail: 0.4}
}

// expectedOracle returns the oracle for these constants.
func expectedOracle(e *selection.Expected) policytest.Oracle {
	return func(job selection.Job, views []selection.View) []float64 { return newNaive(e, job, views).pick() }
}

// withoutParts sets some constants to 0 at random.
func withoutParts(rng *rand.Rand) *selection.Expected {
	e := selection.DefaultExpected()
	for _, constant := range []*float64{&e.Headroom, &e.Fetch, &e.Rank, &e.Crowding, &e.Tail} {
		if rng.IntN(4) == 0 {
			*constant = 0
		}
	}
	return e
}

// costsOf returns the total costs of the views.
func costsOf(policy selection.Coster, job selection.Job, views []selection.View) []selection.Cost {
	costs := make([]selection.Cost, len(views))
	policy.PickWithCosts(job, views, costs, rand.New(rand.NewPCG(1, 1)))
	return costs
}

// TestExpectedCosts compares the choice and each part of every view's cost with the oracle's, with parts of the policy
// switched off.
func TestExpectedCosts(t *testing.T) {
	rng := rand.New(rand.NewPCG(51, 52))
	for range 8000 {
		policy := withoutParts(rng)
		job, views := policytest.Case(rng)
		n := newNaive(policy, job, views)
		n.requireChoice(t, policy.Pick(job, views, rng))
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

// TestExpectedDoesNotHerd: two sidecars with the same reports, each counting its own
// claims only, share a burst of jobs without a project between upstreams; the most
// loaded gets at most 1.5 times the least.
func TestExpectedDoesNotHerd(t *testing.T) {
	policy := selection.DefaultExpected()
	for _, n := range []int{2, 5, 7, 14} {
		for _, reported := range []float64{0, 38, 60} {
			for seed := range uint64(20) {
				sent, rng := make([]float64, n), rand.New(rand.NewPCG(seed, 0))
				for range 2 {
					views := policytest.Idle(n)
					for i := range views {
						busy(&views[i], reported-views[i].Cores)
					}
					for range 50 * n {
						at := policy.Pick(selection.Job{Fetch: 5}, views, rng)
						views[at].Jobs++
						views[at].InFlight++
						sent[at]++
					}
				}
				require.LessOrEqual(t, slices.Max(sent), 1.5*slices.Min(sent), "after %v jobs each: %v", reported, sent)
			}
		}
	}
}
