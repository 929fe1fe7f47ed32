package balancer_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// manyProjects is how many projects the jobs of BenchmarkJob have: so many that what is
// known of one has left the processor's nearest cache when its next job comes.
const manyProjects = 20_000

// BenchmarkJob is what choosing and counting take for one job, by the number of upstreams.
// 32 jobs are open. Each upstream has a fifth of the projects cached, and reports once in
// 100,000 jobs: every five seconds, at 20,000 jobs a second.
func BenchmarkJob(b *testing.B) {
	for _, n := range []int{4, 14, 300} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			lb, rng := benched(b, n), rand.New(rand.NewPCG(3, 4))
			var listings []listing
			for range n {
				cached := listing{}
				for range manyProjects / 5 {
					cached[randomProject(rng)] = true
				}
				listings = append(listings, cached)
			}
			report := func(i int) {
				lb.Report(address(i), pool.Report{
					At: time.Now(), Running: [2]float64{3, 0}, Cores: 64, CoresBusy: 3, Completed: -1, Failed: -1,
					Wait: math.NaN(), Cached: listings[i],
				})
			}
			for i := range n {
				report(i)
			}
			var open [32]*balancer.Lease
			hint := pool.Hint{Running: [2]float64{3, 0}, Known: true, Fetched: -1}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%(100_000/n) == 0 {
					report(i / (100_000 / n) % n)
				}
				last := &open[i%len(open)]
				if *last != nil {
					hint.At, hint.Cached = (*last).Claimed, (*last).Cache == selection.Cached
					(*last).Answered(time.Now(), true, &hint)
					(*last).Done(time.Now(), pool.Answered)
				}
				var err error
				j := lb.Begin(dispatch.Request{Project: randomProject(rng), Arrived: time.Now(), Bytes: 4096, Withdraw: withdrawal(nil)})
				if *last, err = lb.Claim(b.Context(), time.Now(), j); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func randomProject(rng *rand.Rand) uint64 { return hash.Mix(1 + rng.Uint64N(manyProjects)) }

// benched is a balancer as the sidecar has it, of n upstreams.
func benched(b *testing.B, n int) *balancer.Balancer {
	s := pool.Settings{Interval: time.Hour, Breaker: pool.DefaultBreaker()}
	return over(b, n, "expected", "none", s, dispatch.DefaultQueue(), balancer.Hooks{
		Answered: func(time.Time, *dispatch.Job, pool.Choice) {},
	})
}
