package pool

import (
	"math/rand/v2"
	"slices"

	"example.org/pilotfish/pkg/selection"
)

// candidates are the upstreams that a job may go to, and what a policy sees of it and of them. They are used again by
// the next claim.
type candidates struct {
	need    need
	job     selection.Job
	members []*member
	views   []selection.View // of the members, in their order
	reason  Reason           // the least there is against an upstream, those of the members
	reasons []Reason         // of all that were looked at
	count   rules

	near   []*member        // the upstreams of a large pool that are looked at
	costs  []selection.Cost // what the policy weighed; empty if it cannot say
	shadow []selection.Cost // what the shadow weighed
}

// remove takes out candidate i.
func (c *candidates) remove(i int) {
	c.members = slices.Delete(c.members, i, i+1)
	c.views = slices.Delete(c.views, i, i+1)
}

// oneOff is 1 where no job of the project came before, neither here nor at an upstream that has its data, else 0.
func (c *candidates) oneOff() float64 {
	if c.need.project.seen || slices.ContainsFunc(c.views, func(v selection.View) bool { return v.Cache != selection.NotCached }) {
		return 0
	}
	return 1
}

// ask is the choice of a policy among the candidates. memory is where the costs go, which stay empty if it weighs none.
func (c *candidates) ask(policy selection.Policy, memory *[]selection.Cost, rng *rand.Rand) (i int) {
	coster, ok := policy.(selection.Coster)
	if !ok {
		*memory = (*memory)[:0]
		return policy.Pick(c.job, c.views, rng)
	}
	*memory = slices.Grow((*memory)[:0], len(c.views))[:len(c.views)]
	return coster.PickWithCosts(c.job, c.views, *memory, rng)
}

func hasFreeCore(v selection.View) bool { return v.Jobs-v.Coreless < v.Cores }
