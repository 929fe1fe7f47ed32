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
	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// manyProjects is enough to evict the state of a project from the processor's nearest cache
// before its next job.
const manyProjects = 20_000

// BenchmarkJob measures the claim and the end of one job, by the number of upstreams. 32 jobs
// are open. Each upstream has a fifth of the projects cached, and reports once in 100,000 jobs:
// every five seconds, at 20,000 jobs a second.
func BenchmarkJob(b *testing.B) {
	for _, n := range []int{4, 14, 300, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			lb, rng := benched(b, n, "expected"), rand.New(rand.NewPCG(3, 4))
			var open [32]*balancer.Lease
			hint := pool.Hint{Running: [2]float64{3, 0}, Known: true, Fetched: -1}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%(100_000/n) == 0 {
					report(lb, i/(100_000/n)%n)
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

// fifth is the cache of an upstream with a fifth of all projects.
type fifth uint64

func (f fifth) Contains(project uint64) bool { return hash.Pair(project, uint64(f))%5 == 0 }
func (fifth) Bytes(uint64) float64           { return 0 }
func (fifth) Len() int                       { return manyProjects / 5 }

// report adds a report of upstream i.
func report(lb *balancer.Balancer, i int) {
	lb.Report(address(i), pool.Report{
		At: time.Now(), Running: [2]float64{3, 0}, Cores: 64, CoresBusy: 3, Completed: -1, Failed: -1,
		Wait: math.NaN(), Cached: fifth(i),
	})
}

// benched returns a balancer configured like the sidecar's, with n upstreams that have
// reported.
func benched(b *testing.B, n int, policy string) *balancer.Balancer {
	s := pool.Settings{Interval: time.Hour, Breaker: health.Default()}
	lb := over(b, n, policy, "none", s, dispatch.DefaultQueue(), balancer.Hooks{
		Answered: func(time.Time, *dispatch.Job, pool.Choice, *pool.Hint) {},
	})
	for i := range n {
		report(lb, i)
	}
	return lb
}

// BenchmarkUpstreams measures one event, during which jobs wait, by the number of upstreams.
func BenchmarkUpstreams(b *testing.B) {
	for _, n := range []int{14, 1000, 10_000} {
		lb, i := benched(b, n, "expected"), 0
		set := [2][]pool.Upstream{make([]pool.Upstream, n), make([]pool.Upstream, n)} // nine of ten upstreams change
		for k := range n {
			set[0][k].Address, set[1][k].Address = address(k), address(k+(n+9)/10)
		}
		for name, event := range map[string]func(){
			"report":  func() { report(lb, i%n) },
			"failed":  func() { lb.ReportFailed(address(i%n), health.ErrNoResponse) },
			"states":  func() { lb.States() },
			"explain": func() { _, _ = lb.Explain(pool.Request{Project: uint64(i)}) },
			"set":     func() { lb.Set(set[i%2]) },
		} {
			b.Run(fmt.Sprint(name, "/", n), func(b *testing.B) {
				for ; b.Loop(); i++ {
					event()
				}
			})
		}
		for _, policy := range selection.Names() {
			lb := benched(b, n, policy)
			b.Run(fmt.Sprint("claim/", policy, "/", n), func(b *testing.B) {
				for ; b.Loop(); i++ {
					l, err := claim(b.Context(), lb, dispatch.Request{Project: uint64(i)})
					if err != nil {
						b.Fatal(err)
					}
					l.Answered(time.Now(), true, nil)
					l.Done(time.Now(), pool.Answered)
				}
			})
		}
	}
}
