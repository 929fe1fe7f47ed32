package selection_test

import (
	"fmt"
	"math/rand/v2"

	"example.org/pilotfish/pkg/selection"
)

// One upstream has the project's data, but 24 jobs wait there; the other is idle.
func ExampleNew() {
	policy, err := selection.New("expected")
	if err != nil {
		panic(err)
	}
	crowded := selection.View{
		ID: selection.UpstreamID("10.0.0.1:80"), Weight: 1, Cores: 8, Rate: 2,
		Cache: selection.Cached, Warm: 1, Jobs: 32,
		Fresh: true,
	}
	idle := selection.View{
		ID: selection.UpstreamID("10.0.0.2:80"), Weight: 1, Cores: 8, Rate: 2,
		Fresh: true,
	}
	views := []selection.View{crowded, idle} // sorted by address
	rng := rand.New(rand.NewPCG(1, 2))
	for _, fetch := range []float64{2, 2000} { // seconds
		job := selection.Job{Project: 12345, Priority: selection.High, Fetch: fetch}
		fmt.Printf("to fetch takes %v s: upstream %d\n", fetch, policy.Pick(job, views, rng))
	}
	if c, ok := policy.(selection.Coster); ok {
		costs := make([]selection.Cost, len(views))
		c.PickWithCosts(selection.Job{Project: 12345, Fetch: 2}, views, costs, rng)
		fmt.Printf("waiting costs %.1f s, fetching %.1f s\n", costs[0].Total, costs[1].Fetch)
	}
	// Output:
	// to fetch takes 2 s: upstream 1
	// to fetch takes 2000 s: upstream 0
	// waiting costs 13.3 s, fetching 1.0 s
}
