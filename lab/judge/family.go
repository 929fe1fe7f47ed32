package judge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/workload"
)

// Range is what a number is drawn from. Draws are even in the logarithm.
type Range struct {
	Low, High float64
}

func (r Range) draw(rng *rand.Rand) float64 {
	return r.Low * math.Pow(r.High/r.Low, rng.Float64())
}

func (r Range) whole(rng *rand.Rand) int { return int(math.Round(r.draw(rng))) }

// String is "all" for a share that leaves nothing out.
func (r Range) String() string {
	if r.Low >= 1 && r.Low == r.High {
		return "all"
	}
	return fmt.Sprintf("%v to %v", r.Low, r.High)
}

// Family is a kind of workload and fleet, by the ranges from which its settings are drawn.
type Family struct {
	Name    string
	Pattern workload.Pattern
	// Load is the work of all jobs without fetches over what all cores can do; Fetch the
	// mean fetch of a job's project over the mean work of a job.
	Load, Fetch Range
	// Cache is the share of all projects' data that an upstream's cache holds, High that of high jobs.
	Cache, High                      Range
	Upstreams, Cores, Sidecars, Jobs Range
	// Hints says whether upstreams send load hints: all do that can.
	Hints bool
	// change makes the rest of a setting.
	change func(*rand.Rand, *Setting)
}

// usual is what a family is where it says nothing.
func usual(name string, changes ...func(*Family)) Family {
	f := Family{
		Name: name, Pattern: "schedules", Load: Range{0.5, 0.8}, Fetch: Range{0.5, 3}, Cache: Range{1, 1},
		Upstreams: Range{6, 14}, Cores: Range{6, 20}, Sidecars: Range{10, 50}, Jobs: Range{15_000, 35_000}, High: Range{0.1, 0.3},
		Hints: true, change: func(*rand.Rand, *Setting) {},
	}
	for _, change := range changes {
		change(&f)
	}
	return f
}

// Families are all that is judged.
func Families() []Family {
	fleet := func(change func(*rand.Rand, *sim.Fleet)) func(*Family) {
		return func(f *Family) {
			f.change = func(rng *rand.Rand, s *Setting) { change(rng, &s.Fleet) }
		}
	}
	sick := func(kind sim.FaultKind) func(*Family) {
		return fleet(func(rng *rand.Rand, f *sim.Fleet) {
			f.Fault = &sim.Fault{Kind: kind, Upstream: rng.IntN(f.Upstreams), At: 600 * time.Second, For: 600 * time.Second, Factor: 5}
		})
	}
	return []Family{
		usual("plain"),
		usual("light", func(f *Family) { f.Load = Range{0.2, 0.5} }),
		usual("busy", func(f *Family) { f.Load = Range{0.8, 0.95} }),
		usual("fast fetches", func(f *Family) { f.Fetch = Range{0.05, 0.5} }),
		usual("slow fetches", func(f *Family) { f.Fetch = Range{3, 10} }),
		usual("small caches", func(f *Family) { f.Cache = Range{0.1, 0.4} }),
		usual("few upstreams", func(f *Family) { f.Upstreams = Range{2, 4} }),
		usual("many upstreams", func(f *Family) { f.Upstreams, f.Cores = Range{30, 60}, Range{3, 6} }),
		usual("many sidecars", func(f *Family) { f.Sidecars = Range{100, 200} }),
		usual("people", func(f *Family) { f.High = Range{0.6, 0.9} }),
		usual("sources", func(f *Family) { f.Pattern = "sources" }),
		usual("steady", func(f *Family) { f.Pattern = "steady" }),
		usual("flash crowd", func(f *Family) {
			f.change = func(_ *rand.Rand, s *Setting) {
				s.Workload.Crowd = workload.Crowd{At: 900, For: 200, Jobs: s.Workload.Jobs / 10}
			}
		}),
		usual("unlike upstreams", fleet(func(rng *rand.Rand, f *sim.Fleet) {
			half := f.Upstreams / 2
			f.Unlike = sim.Unlike{Upstreams: half, Cores: max(1, f.Cores/2), Speed: Range{0.5, 2}.draw(rng)}
		})),
		usual("one hangs", sick("hung")),
		usual("one is slow", sick("slow")),
		usual("one fails", sick("failing")),
		usual("rolling restart", fleet(func(_ *rand.Rand, f *sim.Fleet) {
			f.Restart = 600 * time.Second
		})),
		usual("arrival order", fleet(func(_ *rand.Rand, f *sim.Fleet) { f.Order = "arrival" })),
		usual("no reports", func(f *Family) {
			f.Hints = false
			f.change = func(_ *rand.Rand, s *Setting) { s.Sidecars.Unpolled = true }
		}),
		usual("rare reports", func(f *Family) {
			f.Hints = false
			f.change = func(_ *rand.Rand, s *Setting) { s.Sidecars.Interval = 30 * time.Second }
		}),
		usual("untold cores", fleet(func(_ *rand.Rand, f *sim.Fleet) { f.Secretive = true })),
		usual("old reports", func(f *Family) { // of one Prometheus server; these upstreams send no hints
			f.Hints = false
			f.change = func(_ *rand.Rand, s *Setting) {
				s.Sidecars.Interval, s.Sidecars.Lag, s.Sidecars.Together = 15*time.Second, 8*time.Second, true
			}
		}),
	}
}
