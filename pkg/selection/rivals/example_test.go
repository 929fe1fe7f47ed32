package rivals_test

import (
	"fmt"
	"math/rand/v2"

	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/selection/policytest"
	"example.org/pilotfish/pkg/selection/rivals"
)

// A project is cached at one of three upstreams, which have nothing to do.
func ExampleNew() {
	views := policytest.Idle(3)
	views[2].Cache, views[2].Warm = selection.Cached, 1
	job := selection.Job{Project: 7, Fetch: 5}
	for _, name := range []string{"round-robin", "expected"} {
		policy, err := rivals.New(name)
		if err != nil {
			panic(err)
		}
		found, rng := 0, rand.New(rand.NewPCG(1, 2))
		for job.Number = range 300 {
			if policy.Pick(job, views, rng) == 2 {
				found++
			}
		}
		fmt.Printf("%s: %d of 300 jobs find the data\n", name, found)
	}
	// Output:
	// round-robin: 100 of 300 jobs find the data
	// expected: 300 of 300 jobs find the data
}
