package pool

import (
	"math/rand/v2"
	"slices"

	"example.org/pilotfish/pkg/selection"
)

// candidates holds the upstreams that a job can go to, with their views for the policy. The next claim reuses the
// memory.
type candidates struct {
	need    need
	job     selection.Job
	members []*member
	views   []selection.View // of the members, in the same order
	reason  Reason           // the reason against the members, which is the least severe of all
	reasons []Reason         // of all upstreams that were considered
	rules   rules

	subset []*member        // the upstreams of a large pool that are considered
	costs  []selection.Cost // by the policy; empty if it computes none
	shadow []selection.Cost // by the shadow policy
}

// remove removes candidate i.
func (c *candidates) remove(i int) {
	c.members = slices.Delete(c.members, i, i+1)
	c.views = slices.Delete(c.views, i, i+1)
}

// oneOff returns 1 if the project is new: it has had no job from this sidecar, and no upstream has its data. Otherwise
// it returns 0.
func (c *candidates) oneOff() float64 {
	if c.need.project.seen || slices.ContainsFunc(c.views, func(v selection.View) bool { return v.Cache != selection.NotCached }) {
		return 0
	}
	return 1
}

// choose returns the index of the policy's choice. It stores the costs in memory, which is left empty if the policy
// computes none.
func (c *candidates) choose(policy selection.Policy, memory *[]selection.Cost, rng *rand.Rand) (i int) {
	coster, ok := policy.(selection.Coster)
	if !ok {
		*memory = (*memory)[:0]
		return policy.Pick(c.job, c.views, rng)
	}
	*memory = slices.Grow((*memory)[:0], len(c.views))[:len(c.views)]
	return coster.PickWithCosts(c.job, c.views, *memory, rng)
}

func hasFreeCore(v selection.View) bool { return v.Jobs-v.BlockedJobs < v.Cores }
