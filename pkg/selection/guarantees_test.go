package selection_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/selection/policytest"
)

// The guarantees of docs/policies.md, each for random views. -cases sets their number; `make
// test-guarantees` runs a million of each.
var cases = flag.Int("cases", 30_000, "random cases for each guarantee")

func everyCase(t *testing.T, seed uint64, check func(rng *rand.Rand, job selection.Job, views []selection.View)) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 2))
	for range *cases {
		job, views := policytest.Case(rng)
		check(rng, job, views)
	}
}

// reported gives every view a fresh report.
func reported(views []selection.View) []selection.View {
	for i := range views {
		views[i].Fresh = true
	}
	return views
}

// totals returns the cost of each view.
func totals(policy selection.Coster, job selection.Job, views []selection.View) []float64 {
	all := make([]float64, len(views))
	for i, c := range costsOf(policy, job, views) {
		all[i] = c.Total
	}
	return all
}

// spoil gives a view random figures, as a faulty upstream could report.
func spoil(rng *rand.Rand, v *selection.View) {
	figure := func() float64 {
		figures := [...]float64{0, 1, 40, 5000, 1e9, 1e308, -1, -1e308, math.NaN(), math.Inf(1)}
		return figures[rng.IntN(len(figures))]
	}
	v.Jobs, v.Cores, v.Rate, v.Assigned, v.Latency = figure(), figure(), figure(), figure(), figure()
	v.Warm = rng.Float64()
}

// Guarantee 1: no figures of one upstream change what another costs, if the
// others report their own load and rate.
func TestGuaranteeOwnCostAlone(t *testing.T) {
	policy := selection.DefaultExpected()
	everyCase(t, 1, func(rng *rand.Rand, job selection.Job, views []selection.View) {
		reported(views)
		for i := range views {
			views[i].Rate = max(views[i].Rate, 0.1)
		}
		before := totals(policy, job, views)
		at := rng.IntN(len(views))
		spoil(rng, &views[at])
		after := totals(policy, job, views)
		before[at], after[at] = 0, 0
		require.Equal(t, before, after, "%+v changed others' costs", views[at])
	})
}

// Guarantee 1, where loads or rates are not known: the estimates stay within the range of the
// other upstreams' reports.
func TestGuaranteeStandIns(t *testing.T) {
	policy := selection.DefaultExpected()
	everyCase(t, 2, func(rng *rand.Rand, job selection.Job, views []selection.View) {
		if len(views) < 4 {
			return
		}
		for i := range views {
			views[i].Fresh, views[i].Rate, views[i].Cores = true, 1, 8
			views[i].Jobs = float64(rng.IntN(30))
		}
		views[0].Fresh, views[0].Jobs = false, 0 // the one that reports nothing
		views[0].InFlight = 0
		lowest, highest := slices.Clone(views), slices.Clone(views)
		lowest[0].Fresh, highest[0].Fresh = true, true
		jobs := []float64{}
		for _, v := range views[2:] {
			jobs = append(jobs, v.Jobs)
		}
		lowest[0].Jobs, highest[0].Jobs = slices.Min(jobs), slices.Max(jobs)
		views[1].Jobs = []float64{0, 5000, 1e9, 1e308}[rng.IntN(4)]
		got := totals(policy, job, views)[0]
		require.GreaterOrEqual(t, got, totals(policy, job, lowest)[0])
		require.LessOrEqual(t, got, totals(policy, job, highest)[0])
	})
}

// Guarantee 2: more load at an upstream never draws a job to it from one that
// reports its load.
func TestGuaranteeMoreLoadNeverAttracts(t *testing.T) {
	policy := selection.DefaultExpected()
	everyCase(t, 3, func(rng *rand.Rand, job selection.Job, views []selection.View) {
		if job.Project == 0 {
			return
		}
		seed := rng.Uint64()
		before := policy.Pick(job, views, rand.New(rand.NewPCG(seed, 0)))
		at := rng.IntN(len(views))
		more := 1 + float64(rng.IntN(100))
		views[at].Jobs += more
		after := policy.Pick(job, views, rand.New(rand.NewPCG(seed, 0)))
		if before != at && views[before].Fresh {
			require.NotEqual(t, at, after, "%v more jobs drew %+v to %+v", more, job, views)
		}
	})
}

// Guarantee 3: no job is sent to an upstream that costs more than the cheapest.
func TestGuaranteeNoDearerThanTheCheapest(t *testing.T) {
	policy := selection.DefaultExpected()
	everyCase(t, 4, func(rng *rand.Rand, job selection.Job, views []selection.View) {
		reported(views)
		costs := totals(policy, job, views)
		got := policy.Pick(job, views, rng)
		require.LessOrEqual(t, costs[got], slices.Min(costs), "%+v of %+v", job, views)
	})
}

// Guarantee 4: a better report never raises an upstream's cost. If the upstream was picked, it
// is picked again.
func TestGuaranteeBetterReportKeepsTheJob(t *testing.T) {
	policy := selection.DefaultExpected()
	everyCase(t, 5, func(rng *rand.Rand, job selection.Job, views []selection.View) {
		if job.Project == 0 {
			return
		}
		reported(views)
		for i := range views {
			views[i].Rate = max(views[i].Rate, 0.1)
		}
		seed := rng.Uint64()
		at := policy.Pick(job, views, rand.New(rand.NewPCG(seed, 0)))
		v := &views[at]
		switch rng.IntN(3) {
		case 0:
			v.Jobs /= 2
		case 1:
			v.Rate *= 2
		case 2:
			if v.Cache != selection.NotCached { // then another can cost as much
				return
			}
			v.Warm = (1 + v.Warm) / 2
		}
		require.Equal(t, at, policy.Pick(job, views, rand.New(rand.NewPCG(seed, 0))), "%+v of %+v", job, views)
	})
}

// Guarantee 5: an upstream whose load is not known costs no less than it would
// with the median load of the others, and no more than with the highest.
func TestGuaranteeUnknownCountsAsTheMedian(t *testing.T) {
	policy := selection.DefaultExpected()
	everyCase(t, 6, func(rng *rand.Rand, job selection.Job, views []selection.View) {
		if len(views) < 3 {
			return
		}
		var perCore []float64
		for i := range views {
			views[i].Fresh, views[i].InFlight = true, 0
			views[i].Cores = max(views[i].Cores, 1)
			perCore = append(perCore, views[i].Jobs/views[i].Cores)
		}
		perCore = perCore[1:]
		slices.Sort(perCore)
		cost := func(load float64) float64 {
			views[0].Jobs = load * views[0].Cores
			return totals(policy, job, views)[0]
		}
		median, highest := cost(perCore[(len(perCore)-1)/2]), cost(perCore[len(perCore)-1])
		views[0].Fresh, views[0].Jobs = false, 0
		got := totals(policy, job, views)[0]
		require.InDelta(t, median, got, 1e-6*median)
		require.LessOrEqual(t, got, highest*(1+1e-9))
	})
}

// Guarantee 6: without figures of load and caches, a job passes an upstream of its rendezvous order only for one with fewer of
// this sidecar's jobs. Jobs of projects that rarely recur go to the upstream with the fewest.
func TestGuaranteeWithoutReports(t *testing.T) {
	policy := selection.DefaultExpected()
	everyCase(t, 7, func(rng *rand.Rand, job selection.Job, views []selection.View) {
		for i, v := range views {
			views[i] = selection.View{ID: v.ID, Weight: 1, Cores: views[0].Cores, InFlight: v.InFlight, Jobs: v.InFlight}
		}
		picked := views[policy.Pick(job, views, rng)]
		for _, i := range policytest.ByRendezvous(job.Project, views) {
			if views[i].ID == picked.ID {
				return
			}
			require.False(t, views[i].InFlight < picked.InFlight || views[i].InFlight == picked.InFlight && job.Project != 0 && job.OneOffProbability <= 0.9,
				"%+v of %+v", job, views)
		}
	})
}

// An implementation of the rule in docs/policies.md makes the same choices, except between costs that differ only by
// rounding.
func TestGuaranteeThePage(t *testing.T) {
	policy := selection.DefaultExpected()
	everyCase(t, 8, func(rng *rand.Rand, job selection.Job, views []selection.View) {
		newNaive(thePage(), job, views).requireChoice(t, policy.Pick(job, views, rng))
	})
}
