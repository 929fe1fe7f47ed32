package judge

import (
	"context"
	"fmt"
	"slices"

	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/lab/rivals"
	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/stats"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// Contender is a policy with its limit.
type Contender struct {
	Policy string
	Limit  float64 // bounded-hash's factor, dynamic's number of stalled joblets; 0 is none
	Alone  bool    // one process before all upstreams, which sees every job
	Queued bool    // upstreams serve jobs by arrival, whatever the setting says
}

func (c Contender) String() string {
	name := c.Policy
	if c.Limit > 0 {
		name = fmt.Sprintf("%s %v", name, c.Limit)
	}
	if c.Alone {
		name += ", one process"
	}
	return name
}

// base is a kind of rival. The contender that stands for it is chosen for each setting.
type base struct {
	name string
	grid []Contender
}

func bases() []base {
	grid := func(c Contender, limits ...float64) (all []Contender) {
		for _, c.Limit = range limits {
			all = append(all, c)
		}
		return all
	}
	return []base{
		{"bounded-hash", grid(Contender{Policy: "bounded-hash"}, 1.05, 1.1, 1.25, 1.5, 2)},
		{"dynamic", grid(Contender{Policy: "dynamic"}, 12, 25, 50, 100, 200)},
		{"one scheduler", grid(Contender{Policy: "dynamic", Alone: true}, 12, 25, 50, 100, 200)},
		{"others", []Contender{{Policy: "least-in-flight"}, {Policy: "p2c-ewma"}, {Policy: "cache-threshold"}, {Policy: "sticky-until"}}},
	}
}

// Outcome is what came of one run, or the mean of several.
type Outcome [figures]float64

// The figures of an Outcome: waits until jobs begin, and of low jobs the mean duration and the mean of all waits,
// those between their joblets, too, in seconds; fetches and jobs without an answer, of 1,000.
const (
	Low = iota
	LowP99
	High
	HighP99
	Time
	Waits
	Fetches
	Unanswered
	figures
)

// leastWait is the shortest wait that is told apart, in seconds: nobody notices shorter
// ones, and the ratio of two of them says nothing.
const leastWait = 0.010

// Play plays jobs before upstreams with caches of so many bytes.
func (c Contender) Play(ctx context.Context, s *Setting, jobs []trace.Job, cache int64, seed uint64) (Outcome, error) {
	policy, err := rivals.New(c.Policy)
	if err != nil {
		return Outcome{}, err
	}
	detector, limit := overload.DefaultPolicy, float64(overload.DefaultLimit)
	switch c.Policy {
	case "bounded-hash":
		policy = selection.BoundedHash{Factor: c.Limit}
	case "dynamic":
		detector, limit = "threshold", c.Limit
	}
	detectors, err := overload.New(detector, limit)
	if err != nil {
		return Outcome{}, err
	}
	fleet := s.Fleet
	fleet.Cache = settings.Size(cache)
	run, waits, count, unanswered := stats.NewRun(), stats.NewDistribution(), 0.0, 0.0
	cfg := sim.Config{
		Source: slices.Values(jobs), Seed: seed, Policy: policy, Detector: detectors, WarmUp: s.WarmUp,
		Fleet: fleet, Sidecars: s.Sidecars,
		Observe: func(r *sim.Result) {
			count++
			if r.Outcome != sim.Done {
				unanswered++
			}
			if !r.Prefetch {
				run.Add(r.Priority, r.Wait.Seconds(), r.Run.Seconds())
				if r.Priority == selection.Low {
					waits.Add((r.Wait + r.Stalled).Seconds())
				}
			}
		},
	}
	if c.Alone {
		cfg.Sidecars.Count = 1
	}
	if c.Queued {
		cfg.Fleet.Order = "arrival"
	}
	totals, err := sim.Run(ctx, cfg)
	o := Outcome{Fetches: 1000 * float64(totals.Fetches) / max(1, count), Unanswered: 1000 * unanswered / max(1, count)}
	low, high := run.Summary(selection.Low, stats.Wait), run.Summary(selection.High, stats.Wait)
	for i, s := range []float64{low.Mean, low.P99, high.Mean, high.P99, run.Summary(selection.Low, stats.Duration).Mean, waits.Summary().Mean} {
		o[i] = max(leastWait, s)
	}
	return o, err
}
