package selection

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// An oracle says, slowly and plainly, with which probability each view is picked.
type oracle func(job Job, views []View) []float64

// oracles has one for every policy.
func oracles() map[string]oracle {
	return map[string]oracle{
		"baseline":        baselineOracle,
		"random":          randomOracle,
		"dynamic":         dynamicOracle,
		"round-robin":     roundRobinOracle,
		"least-in-flight": leastInFlightOracle,
		"stretch":         stretchOracle,
		"home-step":       homeStepOracle,
		"bounded-hash":    boundedHashOracle,
		"p2c-ewma":        p2cOracle,
		"cache-threshold": cacheThresholdOracle,
		"sticky-until":    stickyUntilOracle,
		"expected":        expectedOracle(ExpectedConfig{}),
	}
}

// evenly gives all the listed views of n the same probability.
func evenly(n int, chosen []int) []float64 {
	p := make([]float64, n)
	for _, i := range chosen {
		p[i] = 1 / float64(len(chosen))
	}
	return p
}

// indices lists the views that ok holds for.
func indices(views []View, ok func(View) bool) []int {
	var found []int
	for i, v := range views {
		if ok(v) {
			found = append(found, i)
		}
	}
	return found
}

// lowest keeps those of the chosen views whose cost is the lowest.
func lowest(views []View, chosen []int, cost func(View) float64) []int {
	var costs []float64
	for _, i := range chosen {
		costs = append(costs, cost(views[i]))
	}
	least := slices.Min(costs)
	return slices.DeleteFunc(slices.Clone(chosen), func(i int) bool { return cost(views[i]) != least })
}

func anyView(View) bool { return true }

func load(v View) float64 { return v.InFlight / math.Max(v.Weight, 1e-9) }

func cores(v View) float64 {
	if v.Cores == 0 {
		return 8
	}
	return v.Cores
}

// byRendezvous sorts the indices of views by the project's preference.
func byRendezvous(project uint64, views []View) []int {
	order := indices(views, anyView)
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Compare(
			Rendezvous(project, views[j].ID, views[j].Weight),
			Rendezvous(project, views[i].ID, views[i].Weight))
	})
	return order
}

func randomOracle(_ Job, views []View) []float64 {
	return evenly(len(views), indices(views, anyView))
}

func baselineOracle(job Job, views []View) []float64 {
	if job.Project == 0 {
		return randomOracle(job, views)
	}
	order := indices(views, anyView)
	rng := rand.NewPCG(job.Project, 0)
	for i := range order {
		j := i + int(rng.Uint64()%uint64(len(order)-i))
		order[i], order[j] = order[j], order[i]
	}
	return evenly(len(views), order[:1])
}

func dynamicOracle(job Job, views []View) []float64 {
	if job.Project == 0 {
		return randomOracle(job, views)
	}
	return evenly(len(views), lowest(views, indices(views, anyView), func(v View) float64 {
		return v.Assigned - 1e9*float64(v.Cache)
	}))
}

func roundRobinOracle(job Job, views []View) []float64 {
	at := 0
	for range job.Number {
		at = (at + 1) % len(views)
	}
	return evenly(len(views), []int{at})
}

func leastInFlightOracle(_ Job, views []View) []float64 {
	return evenly(len(views), lowest(views, indices(views, anyView), load))
}

func stretchOracle(job Job, views []View) []float64 {
	return evenly(len(views), lowest(views, indices(views, anyView), func(v View) float64 {
		free := v.IdleCPU
		if job.Priority == Low {
			free -= 0.1
		}
		if job.Project == 0 || v.Cache >= AssumedCached {
			w := 0.95
			return w/math.Max(free, 0.01) + (1-w)/math.Max(v.IdleIO, 0.01)
		}
		return 0.5/math.Max(free, 0.01) + 0.5/math.Max(v.IdleIO, 0.01)
	}))
}

func homeStepOracle(job Job, views []View) []float64 {
	n := uint64(len(views))
	free := indices(views, func(v View) bool { return v.Jobs < 2*cores(v) })
	if job.Project != 0 {
		hash := mix(job.Project)
		step := hash>>32%n + 1
		for !coprimeTo(step, n) {
			step = step%n + 1
		}
		for k := range n {
			if i := int((hash%n + k*step) % n); slices.Contains(free, i) {
				return evenly(len(views), []int{i})
			}
		}
	}
	if len(free) == 0 {
		return randomOracle(job, views)
	}
	// The start is random, the walk from it is not: only what is possible is
	// checked here, that all are, on free views alone.
	return possible(len(views), free)
}

// coprimeTo reports whether no number above 1 divides both.
func coprimeTo(a, b uint64) bool {
	for d := uint64(2); d <= min(a, b); d++ {
		if a%d == 0 && b%d == 0 {
			return false
		}
	}
	return true
}

// possible marks views as pickable, with a probability that is not known.
func possible(n int, chosen []int) []float64 {
	p := make([]float64, n)
	for _, i := range chosen {
		p[i] = math.NaN()
	}
	return p
}

func boundedHashOracle(job Job, views []View) []float64 {
	if job.Project == 0 {
		return leastInFlightOracle(job, views)
	}
	jobs, weights := 1.0, 0.0
	for _, v := range views {
		jobs += v.InFlight
		weights += v.Weight
	}
	for _, i := range byRendezvous(job.Project, views) {
		share := 1 / float64(len(views))
		if weights > 0 {
			share = views[i].Weight / weights
		}
		if views[i].InFlight+1 <= math.Ceil(1.5*jobs*share) {
			return evenly(len(views), []int{i})
		}
	}
	panic("every upstream is above the bound")
}

func p2cOracle(_ Job, views []View) []float64 {
	n := len(views)
	p := make([]float64, n)
	if n == 1 {
		return []float64{1}
	}
	cost := func(v View, latency float64) float64 {
		return (v.InFlight + 1) / math.Max(v.Weight, 1e-9) * latency
	}
	for a, v := range views {
		for b, w := range views {
			known := v.Latency > 0 && w.Latency > 0
			ca, cb := cost(v, 1), cost(w, 1)
			if known {
				ca, cb = cost(v, v.Latency), cost(w, w.Latency)
			}
			chance := 1 / float64(n*(n-1))
			switch {
			case a == b:
			case ca <= cb:
				p[a] += chance
			default:
				p[b] += chance
			}
		}
	}
	return p
}

func cacheThresholdOracle(job Job, views []View) []float64 {
	all := indices(views, anyView)
	loads := make([]float64, 0, len(views))
	for _, v := range views {
		loads = append(loads, load(v))
	}
	slices.Sort(loads)
	least, most := loads[0], loads[len(loads)-1]
	uneven := most-least > 64 && most > 1.5*least
	if job.Project != 0 && !uneven {
		all = lowest(views, all, func(v View) float64 { return -float64(v.Cache) })
	}
	return evenly(len(views), lowest(views, all, load))
}

func stickyUntilOracle(job Job, views []View) []float64 {
	estimate := estimator(views, 1.0/12)
	time := func(v View) float64 { return v.Jobs / estimate(v) }
	chosen := indices(views, anyView)
	cached := indices(views, func(v View) bool { return v.Warm >= 0.8 })
	other := indices(views, func(v View) bool { return v.Warm < 0.8 })
	if job.Project == 0 {
		return evenly(len(views), lowest(views, chosen, time))
	}
	if len(cached) > 0 {
		chosen = cached
		if len(other) > 0 {
			best, rest := lowest(views, cached, time)[0], lowest(views, other, time)[0]
			if time(views[best])-time(views[rest]) > 18 {
				chosen = indices(views, anyView)
			}
		}
	}
	return evenly(len(views), lowest(views, chosen, func(v View) float64 {
		return time(v) + (1-v.Warm)*job.Fetch
	}))
}

// estimator gives each view's rate, or the mean of the others' for its cores.
func estimator(views []View, standard float64) func(View) float64 {
	rates, known := 0.0, 0.0
	for _, v := range views {
		if v.Rate > 0 {
			rates += v.Rate
			known += cores(v)
		}
	}
	perCore := standard
	if known > 0 {
		perCore = rates / known
	}
	return func(v View) float64 {
		if v.Rate > 0 {
			return v.Rate
		}
		return perCore * cores(v)
	}
}
