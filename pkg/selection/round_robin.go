package selection

import "math/rand/v2"

// RoundRobin takes the upstreams in turn, by the number of the claim. It sees
// neither load nor caches nor weights. Sidecars that start counting at
// different numbers do not march in step.
//
// Source: Zhu, Smith and Yang's Flat-R. Use it to compare with.
type RoundRobin struct{}

// Pick implements Policy.
func (RoundRobin) Pick(job Job, views []View, _ *rand.Rand) int {
	return int(job.Number % uint64(len(views)))
}
