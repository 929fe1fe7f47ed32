// Package policytest checks host selection policies against oracles, for those
// who write a policy of their own. An oracle gives the same answer as the
// policy, but slowly and plainly.
//
//	err := policytest.Check(policy, func(job selection.Job, views []selection.View) []float64 {
//		return policytest.Evenly(len(views), policytest.Lowest(views, policytest.All(views), load))
//	})
package policytest

import (
	"cmp"
	"math"
	"slices"

	"example.org/pilotfish/pkg/selection"
)

// Oracle returns the probability with which a policy picks each view. NaN
// means that a view may be picked, with a probability that is not known.
type Oracle func(job selection.Job, views []selection.View) []float64

// Evenly returns an equal probability for each of the chosen views out of n.
func Evenly(n int, chosen []int) []float64 {
	p := make([]float64, n)
	for _, i := range chosen {
		p[i] = 1 / float64(len(chosen))
	}
	return p
}

// Possible returns NaN for the chosen views out of n: each may be picked, with an unknown probability.
func Possible(n int, chosen []int) []float64 {
	p := make([]float64, n)
	for _, i := range chosen {
		p[i] = math.NaN()
	}
	return p
}

// Any is the oracle of a policy that picks every upstream with the same probability.
func Any(_ selection.Job, views []selection.View) []float64 {
	return Evenly(len(views), All(views))
}

// All lists the indices of views.
func All(views []selection.View) []int {
	return Where(views, func(selection.View) bool { return true })
}

// Where returns the indices of the views for which ok is true.
func Where(views []selection.View, ok func(selection.View) bool) []int {
	var found []int
	for i, v := range views {
		if ok(v) {
			found = append(found, i)
		}
	}
	return found
}

// Lowest returns the chosen views with the lowest cost.
func Lowest(views []selection.View, chosen []int, cost func(selection.View) float64) []int {
	var costs []float64
	for _, i := range chosen {
		costs = append(costs, cost(views[i]))
	}
	least := slices.Min(costs)
	return slices.DeleteFunc(slices.Clone(chosen), func(i int) bool { return cost(views[i]) != least })
}

// ByRendezvous sorts the indices of views by the project's preference.
func ByRendezvous(project uint64, views []selection.View) []int {
	order := All(views)
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Compare(
			selection.Rendezvous(project, views[j].ID, views[j].Weight),
			selection.Rendezvous(project, views[i].ID, views[i].Weight))
	})
	return order
}
