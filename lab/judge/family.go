package judge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/workload"
)

// Range holds the bounds of a random number. Its logarithm is drawn uniformly.
type Range struct {
	Low, High float64
}

func (r Range) draw(rng *rand.Rand) float64 {
	return r.Low * math.Pow(r.High/r.Low, rng.Float64())
}

func (r Range) whole(rng *rand.Rand) int { return int(math.Round(r.draw(rng))) }

func (r Range) String() string {
	if r.Low == r.High {
		return fmt.Sprint(r.Low)
	}
	return fmt.Sprintf("%v to %v", r.Low, r.High)
}

// Family is a kind of workload and fleet, by the ranges from which its settings are drawn.
type Family struct {
	Name    string
	Pattern workload.Pattern
	// Load is the work of all jobs, without fetches, divided by what all cores can do in the same time. Fetch is the
	// mean fetch time of a job's project divided by the mean work of a job.
	Load, Fetch Range
	// Cache is the share of all projects' data that an upstream's cache can hold. High is the
	// share of high jobs among all jobs.
	Cache, High                      Range
	Upstreams, Cores, Sidecars, Jobs Range
	// Hints makes every capable upstream send load hints, respond to probes, and withdraw waiting jobs.
	Hints bool
	// seeds is the number of seeds with which each setting is judged, besides those for tuning.
	seeds int
	// change sets the remaining fields of a setting.
	change func(*rand.Rand, *Setting)
}

// usual returns a family with the ranges that most families have, and with the given changes.
func usual(name string, changes ...func(*Family)) Family {
	f := Family{
		Name: name, Pattern: "schedules", Load: Range{0.5, 0.8}, Fetch: Range{0.2, 2}, Cache: Range{1, 1},
		Upstreams: Range{6, 14}, Cores: Range{6, 20}, Sidecars: Range{10, 50}, Jobs: Range{8_000, 16_000}, High: Range{0.1, 0.3},
		Hints: true, seeds: 2, change: func(*rand.Rand, *Setting) {},
	}
	for _, change := range changes {
		change(&f)
	}
	return f
}

// Families returns the families that are judged.
func Families() []Family {
	setting := func(change func(*Setting)) func(*Family) {
		return func(f *Family) { f.change = func(_ *rand.Rand, s *Setting) { change(s) } }
	}
	fleet := func(change func(*rand.Rand, *sim.Fleet)) func(*Family) {
		return func(f *Family) {
			f.change = func(rng *rand.Rand, s *Setting) { change(rng, &s.Fleet) }
		}
	}
	sick := func(kind sim.FaultKind) func(*Family) {
		return fleet(func(rng *rand.Rand, f *sim.Fleet) {
			f.Fault = &sim.Fault{Kind: kind, Upstream: rng.IntN(f.Upstreams), At: 400 * time.Second, For: 400 * time.Second, Factor: 5}
		})
	}
	fast := func(times float64) func(*Family) {
		return fleet(func(_ *rand.Rand, f *sim.Fleet) {
			f.Unlike = sim.Unlike{Upstreams: f.Upstreams / 2, Cores: f.Cores, Speed: times}
		})
	}
	crowd := func(from, lasts float64, part int) func(*Setting) {
		return func(s *Setting) {
			s.Workload.Crowd = workload.Crowd{At: from, For: lasts, Jobs: s.Workload.Jobs / part}
		}
	}
	silent := func(change func(*sim.Sidecars)) func(*Family) {
		return func(f *Family) {
			f.Hints = false
			f.change = func(_ *rand.Rand, s *Setting) { change(&s.Sidecars) }
		}
	}
	hot := func(projects int, share, every float64) func(*Family) {
		return func(f *Family) {
			f.Pattern = "steady"
			f.change = func(_ *rand.Rand, s *Setting) {
				s.Workload.Hot = workload.Hot{Projects: projects, Share: share, Every: every}
			}
		}
	}
	return []Family{
		usual("plain"),
		usual("light", func(f *Family) { f.Load = Range{0.2, 0.5} }),
		usual("busy", func(f *Family) { f.Load = Range{0.8, 0.95} }),
		usual("fast fetches", func(f *Family) { f.Fetch = Range{0.02, 0.2} }),
		usual("slow fetches", func(f *Family) { f.Fetch = Range{2, 8} }),
		usual("small caches", func(f *Family) { f.Cache = Range{0.1, 0.4} }),
		usual("few upstreams", func(f *Family) { f.Upstreams = Range{2, 4} }),
		usual("60 small upstreams", func(f *Family) { f.Upstreams, f.Cores, f.Sidecars = Range{60, 60}, Range{2, 4}, Range{5, 10} }),
		usual("small shop", func(f *Family) {
			f.Upstreams, f.Cores, f.Sidecars, f.Jobs = Range{3, 3}, Range{2, 8}, Range{1, 4}, Range{1000, 4000}
		}),
		usual("one sidecar", func(f *Family) { f.Sidecars = Range{1, 1} }),
		usual("three sidecars", func(f *Family) { f.Sidecars = Range{3, 3} }),
		usual("many sidecars", func(f *Family) { f.Sidecars = Range{100, 200} }),
		usual("people", func(f *Family) { f.High = Range{0.6, 0.9} }),
		usual("sources", func(f *Family) { f.Pattern = "sources" }),
		usual("steady", func(f *Family) { f.Pattern = "steady" }),
		usual("100,000 projects", func(f *Family) {
			f.Pattern, f.Fetch = "steady", Range{0.1, 0.4}
			f.change = func(_ *rand.Rand, s *Setting) { s.Workload.Projects = 100_000 }
		}),
		usual("bursts", func(f *Family) { f.Pattern = "bursts" }, setting(func(s *Setting) {
			s.Workload.Bursts = workload.Bursts{Size: s.Workload.Jobs/40 + 1, Every: 30}
		})),
		usual("flash crowd", setting(crowd(600, 130, 10))),
		usual("flood", setting(func(s *Setting) {
			crowd(600, 100, 4)(s)
			s.Flood = true
		})),
		usual("moving hot set", hot(10, 0.5, 120)),
		usual("low backlog", hot(10, 0.9, 300), func(f *Family) { f.Cores, f.Fetch = Range{2, 4}, Range{2, 6} }),
		usual("unlike upstreams", fleet(func(rng *rand.Rand, f *sim.Fleet) {
			half := f.Upstreams / 2
			f.Unlike = sim.Unlike{Upstreams: half, Cores: max(1, f.Cores/2), Speed: Range{0.5, 2}.draw(rng)}
		})),
		usual("speeds 2 to 1", fast(2)),
		usual("speeds 8 to 1", fast(8)),
		usual("one hangs", sick("hung")),
		usual("one is slow", sick("slow")),
		usual("one fails", sick("failing")),
		usual("rolling restart", fleet(func(_ *rand.Rand, f *sim.Fleet) {
			f.Stops = sim.Stops{First: 430 * time.Second, Every: time.Minute, Away: 20 * time.Second}
		})),
		usual("pre-emptible", fleet(func(_ *rand.Rand, f *sim.Fleet) {
			f.Stops = sim.Stops{
				First: 350 * time.Second, Every: 90 * time.Second, Upstreams: f.Upstreams * 10 / 14, Known: true, Early: 0.2,
				Away: 5 * time.Minute, AwayMost: 10 * time.Minute,
			}
		})),
		usual("arrival order", fleet(func(_ *rand.Rand, f *sim.Fleet) { f.Order = "arrival" })),
		usual("no reports", silent(func(v *sim.Sidecars) { v.Unpolled = true })),
		usual("rare reports", silent(func(v *sim.Sidecars) { v.Interval = 30 * time.Second })),
		usual("untold cores", fleet(func(_ *rand.Rand, f *sim.Fleet) { f.Secretive = true })),
		// The reports come from one Prometheus server; these upstreams send no hints.
		usual("old reports", silent(func(v *sim.Sidecars) { v.Interval, v.Lag, v.Together = 15*time.Second, 8*time.Second, true })),
	}
}

// Raced returns the fleet and the jobs of make race as families, with one sidecar and with three.
func Raced() (all []Family) {
	for _, sidecars := range []float64{1, 3} {
		for _, pattern := range []workload.Pattern{"schedules", "sources", "steady"} {
			all = append(all, Family{
				Name: fmt.Sprintf("%s, %v", pattern, sidecars), Pattern: pattern, Load: Range{0.75, 0.75}, Fetch: Range{1, 1}, Cache: Range{1, 1}, High: Range{0.2, 0.2},
				Upstreams: Range{8, 8}, Cores: Range{4, 4}, Sidecars: Range{sidecars, sidecars}, Jobs: Range{1400, 1400}, Hints: true, seeds: 6,
				change: func(_ *rand.Rand, s *Setting) {
					s.WarmUp = 0
					w := &s.Workload
					w.Duration, w.Submitters, w.MaxWork, w.MaxView, w.MaxBytes = 210, 30, 20, 10, 50e6
				},
			})
		}
	}
	return all
}
