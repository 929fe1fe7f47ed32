package selection_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/selection/policytest"
)

// standard is the documented defaults.
func standard() selection.ExpectedConfig {
	return selection.ExpectedConfig{
		WaitPrice: 1.5, Spare: 0.2, FetchScale: 0.5, FetchPower: 0.6, FetchShare: 0.5,
		RankPrice: 1.5, Crowding: 4.5, WarmAt: 0.5, Band: 0.05, BandWidth: 1,
		SlowStart: 60, TailScale: 1.6, LongestJob: 7200, CoreRate: 1.0 / 12,
	}
}

// naive is Expected, written from the rule with sorting and searching.
type naive struct {
	selection.ExpectedConfig
	job   selection.Job
	views []selection.View
	rate  func(selection.View) float64
	order []int // all views, in rendezvous order
}

func (n naive) on(p selection.Part) bool { return n.Off&p == 0 }

func (n naive) warm(v selection.View) bool {
	return n.job.Project == 0 || v.Warm >= n.WarmAt
}

func (n naive) refused(v selection.View) bool {
	if !n.on(selection.PartSlowStart) || v.Uptime >= n.SlowStart {
		return false
	}
	lot := hash.Mix(hash.Mix(n.job.Project^v.ID*0x9e3779b97f4a7c15) ^ 0x9e3779b97f4a7c15)
	return (float64(lot>>12)+0.5)/(1<<52) >= math.Max(0.1, v.Uptime/n.SlowStart)
}

func (n naive) usable(v selection.View) float64 {
	if n.on(selection.PartSpare) {
		return cores(v) - n.Spare*cores(v)
	}
	return cores(v)
}

func (n naive) queue(v selection.View) (ahead float64, full bool) {
	ahead = math.Max(math.Max(n.jobs(v)-n.usable(v), v.Stalled), 0)
	return ahead, ahead > 0 || n.jobs(v) >= n.usable(v)
}

func (n naive) waitPrice() float64 {
	if n.on(selection.PartWaitPrice) {
		return n.WaitPrice
	}
	return 1
}

func (n naive) fetchPrice() float64 {
	price := n.job.Fetch
	if n.on(selection.PartFetchPrice) {
		price = n.FetchScale * math.Pow(n.job.Fetch, n.FetchPower)
	}
	if n.on(selection.PartShare) {
		price /= 1 + n.FetchShare*n.job.Open
	}
	return price
}

func (n naive) rankPrice(v selection.View) float64 {
	price := n.RankPrice * n.fetchPrice()
	if n.on(selection.PartCrowding) {
		perCore := math.Min(n.jobs(v)/cores(v), 10)
		price *= math.Max(1, n.Crowding*perCore*perCore)
	}
	return price
}

func knows(v selection.View) bool { return !math.IsInf(v.Age, 1) }

// jobs is how many jobs are at v, known or estimated from the views that report.
func (n naive) jobs(v selection.View) float64 {
	if knows(v) {
		return v.Jobs
	}
	own, all := 0.0, []float64{}
	for _, other := range n.views {
		if knows(other) {
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

// firstCachedBelowBound is where a job goes while too little is known of the load.
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
		if n.job.Project != 0 && n.warm(n.views[i]) && n.views[i].InFlight < math.Ceil(1.3*jobs*share) {
			return i, true
		}
	}
	return 0, false
}

// blind reports whether fewer than half of the views report.
func (n naive) blind() bool {
	known := 0
	for _, v := range n.views {
		if knows(v) {
			known++
		}
	}
	return 2*known < len(n.views)
}

func (n naive) cost(i int) selection.Cost {
	v, c := n.views[i], selection.Cost{}
	ahead, full := n.queue(v)
	switch {
	case full:
		c.Wait = n.waitPrice() * (ahead + 1) / n.rate(v)
	case n.on(selection.PartShadow):
		used := n.jobs(v) / n.usable(v)
		c.Wait = used * used * (used * used) / n.rate(v)
	}
	if n.on(selection.PartStop) && v.Left < n.LongestJob {
		left := math.Max(v.Left, n.TailScale)
		c.Stop = math.Max(0, n.TailScale/left-n.TailScale/n.LongestJob) * (left + n.job.Fetch)
	}
	if n.job.Project != 0 {
		c.Fetch = n.fetchPrice() * (1 - v.Warm)
		if v.FetchFactor > 0 {
			c.Fetch *= v.FetchFactor
		}
	}
	if !n.warm(v) {
		rank := min(slices.Index(n.order, i), 5)
		if n.refused(v) {
			c.Placement = n.SlowStart - v.Uptime
			rank += 5
		}
		if n.on(selection.PartPlacement) {
			c.Placement += n.rankPrice(v) * float64(rank)
		}
	}
	c.Total = c.Wait + c.Fetch + c.Placement + c.Stop
	return c
}

func (n naive) pick() []float64 {
	if n.blind() {
		if i, ok := n.firstCachedBelowBound(); ok {
			return policytest.Evenly(len(n.views), []int{i})
		}
		return boundedHashOracle(n.job, n.views, 1.3)
	}
	totals := make([]float64, len(n.views))
	for i := range totals {
		totals[i] = n.cost(i).Total
	}
	total := func(i int) float64 { return totals[i] }
	// In rendezvous order: the first of several cheapest others is the one to take.
	var homes, others []int
	for _, i := range n.order {
		if n.warm(n.views[i]) {
			homes = append(homes, i)
		} else {
			others = append(others, i)
		}
	}
	cheapest := func(of []int) int {
		best := of[0]
		for _, i := range of {
			if total(i) < total(best) {
				best = i
			}
		}
		return best
	}
	if len(homes) == 0 {
		return policytest.Evenly(len(n.views), []int{cheapest(others)})
	}
	home := cheapest(slices.Sorted(slices.Values(homes)))
	if len(others) > 0 {
		other := cheapest(others)
		if total(home) > total(other) {
			return policytest.Evenly(len(n.views), []int{other})
		}
	}
	limit := total(home) + n.band(home)
	near := slices.DeleteFunc(slices.Clone(homes), func(i int) bool { return total(i) > limit })
	return twoChoices(len(n.views), policytest.Lowest(n.views, near, load), total)
}

func (n naive) band(i int) float64 {
	v := n.views[i]
	if !n.on(selection.PartBand) {
		return 0
	}
	if _, full := n.queue(v); !full {
		return n.Band
	}
	came := math.Min(v.Age, 60) / n.rate(v)
	return math.Max(n.Band, n.BandWidth*n.waitPrice()*math.Sqrt(came))
}

// twoChoices is how often each is the cheaper of a random two of the near ones.
func twoChoices(n int, near []int, total func(int) float64) []float64 {
	if len(near) == 1 {
		return policytest.Evenly(n, near)
	}
	p := make([]float64, n)
	chance := 1 / float64(len(near)*(len(near)-1))
	for _, a := range near {
		for _, b := range near {
			switch {
			case a == b:
			case total(a) < total(b):
				p[a] += chance
			case total(b) < total(a):
				p[b] += chance
			default:
				p[a] += chance / 2
				p[b] += chance / 2
			}
		}
	}
	return p
}

// newNaive fills in what is not given with the defaults.
func newNaive(config selection.ExpectedConfig, job selection.Job, views []selection.View) naive {
	off := config.Off
	config = standard()
	config.Off = off
	return naive{
		ExpectedConfig: config, job: job, views: views,
		rate: estimator(views, config.CoreRate), order: policytest.ByRendezvous(job.Project, views),
	}
}

// expectedOracle is the oracle for the default parameters without some parts.
func expectedOracle(config selection.ExpectedConfig) policytest.Oracle {
	return func(job selection.Job, views []selection.View) []float64 { return newNaive(config, job, views).pick() }
}

// allParts is the set of all parts.
func allParts() (all selection.Part) {
	for _, p := range selection.Parts() {
		all |= p
	}
	return all
}

// TestExpectedWithoutParts compares with the oracle whatever is switched off.
func TestExpectedWithoutParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	for range 8000 {
		config := selection.ExpectedConfig{Off: selection.Part(rng.Uint32()) & allParts()}
		policy, err := selection.NewExpected(config)
		require.NoError(t, err)
		job, views := policytest.Case(rng)
		got := policy.Pick(job, views, rng)
		want := expectedOracle(config)(job, views)
		require.NotZero(t, want[got], "picked %d for %+v of %+v without %b", got, job, views, config.Off)
	}
}

// Pick and Costs in one are what they are apart.
func TestExpectedPicksWithCosts(t *testing.T) {
	rng := rand.New(rand.NewPCG(53, 54))
	policy, err := selection.NewExpected(standard())
	require.NoError(t, err)
	for seed := range uint64(2000) {
		job, views := policytest.Case(rng)
		want, got := make([]selection.Cost, len(views)), make([]selection.Cost, len(views))
		policy.Costs(job, views, want)
		picked := policy.Pick(job, views, rand.New(rand.NewPCG(seed, 0)))
		require.Equal(t, picked, policy.PickWithCosts(job, views, got, rand.New(rand.NewPCG(seed, 0))))
		require.Equal(t, want, got)
	}
}

// TestExpectedCosts compares every view's cost with the oracle's, to the cause.
func TestExpectedCosts(t *testing.T) {
	rng := rand.New(rand.NewPCG(51, 52))
	for range 4000 {
		config := selection.ExpectedConfig{Off: selection.Part(rng.Uint32()&rng.Uint32()) & allParts()}
		policy, err := selection.NewExpected(config)
		require.NoError(t, err)
		job, views := policytest.Case(rng)
		costs := make([]selection.Cost, len(views))
		policy.Costs(job, views, costs)
		n := newNaive(config, job, views)
		for i, got := range costs {
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
