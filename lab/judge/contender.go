package judge

import (
	"cmp"
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
	// Limit is the load factor of bounded-hash and reported-hash, dynamic's limit of stalled joblets per core, and
	// cache-threshold's limit of the difference in jobs between the most and the least loaded upstream; 0 is no limit.
	Limit    float64
	Alone    bool // one process in front of all upstreams, which sees every job
	Queued   bool // upstreams serve jobs by arrival, whatever the setting says
	Unprobed bool // it sends no probes, whatever the setting says
	// Overload replaces dynamic's threshold by another detection with its limit; Hedged sends copies to idle upstreams.
	Overload string
	Hedged   bool
}

func (c Contender) String() string {
	if c.Limit > 0 {
		return fmt.Sprintf("%s %v", c.Policy, c.Limit)
	}
	return c.Policy
}

// rivalKind is a rival with a grid of limits. For each setting, the contender with the best limit is chosen from the
// grid.
type rivalKind struct {
	name  string
	alone bool
	grid  []Contender // by rising limit
}

// rivalKinds returns first the rivals with as many processes as pilotfish, then those in one process. Limits below the
// smallest of each grid would change nothing: a bound is never below the mean, and a single stalled joblet, or a
// difference of one job, already exceeds the smallest limit.
func rivalKinds() (all []rivalKind) {
	bounds, stalled, uneven := []float64{1, 1.1, 1.3, 1.7, 2.5, 4}, []float64{0.03, 0.1, 0.25, 0.6, 1.5, 4, 10, 25}, []float64{0.5, 1, 4, 16, 64, 256}
	add := func(name string, policy string, alone bool, limits ...float64) {
		b := rivalKind{name: name, alone: alone}
		for _, limit := range limits {
			b.grid = append(b.grid, Contender{Policy: policy, Limit: limit, Alone: alone})
		}
		all = append(all, b)
	}
	add("bounded-hash", "bounded-hash", false, bounds...)
	add("reported-hash", "reported-hash", false, bounds...)
	add("dynamic", "dynamic", false, stalled...)
	add("cache-threshold", "cache-threshold", false, uneven...)
	add("heft", "heft", false, 0)
	all = append(all, rivalKind{name: "others", grid: []Contender{{Policy: "least-in-flight"}, {Policy: "p2c-ewma"}, {Policy: "sticky-until"}}})
	add("bounded-hash, 1", "bounded-hash", true, bounds...)
	add("dynamic, 1", "dynamic", true, stalled...)
	add("cache-threshold, 1", "cache-threshold", true, uneven...)
	add("heft, 1", "heft", true, 0)
	return all
}

// atEdge reports whether a contender has the largest limit of its grid, so that a still larger limit could be better.
func (b *rivalKind) atEdge(c Contender) bool { return c.Limit > 0 && c == b.grid[len(b.grid)-1] }

// tuning is the number of seeds for choosing a contender.
const tuning = 3

// tune returns the contender whose low jobs wait least. After each of the seeds, the better half of the contenders is kept
// for the next. wait returns a contender's mean wait with a seed; sum is the sum over all seeds.
func (b *rivalKind) tune(wait func(c Contender, seed int) (float64, error)) (chosen Contender, sum float64, err error) {
	type candidate struct {
		Contender
		sum float64
	}
	var left []candidate
	for _, c := range b.grid {
		left = append(left, candidate{Contender: c})
	}
	for seed := range tuning {
		for i := range left {
			w, err := wait(left[i].Contender, seed)
			if err != nil {
				return chosen, 0, err
			}
			left[i].sum += w
		}
		slices.SortStableFunc(left, func(a, b candidate) int { return cmp.Compare(a.sum, b.sum) })
		if seed < tuning-1 {
			left = left[:(len(left)+1)/2]
		}
	}
	return left[0].Contender, left[0].sum, nil
}

// Outcome is the result of one run, or the mean of several.
type Outcome [figures]float64

// The figures of an Outcome, in seconds: waits until jobs start; all waits, including those between joblets; and the
// mean duration of low jobs. Fetches and jobs without a result are counted per 1,000 jobs.
const (
	Low = iota
	LowP99
	High
	HighP99
	Waits
	WaitsP99
	HighWaits
	HighWaitsP99
	Time
	Fetches
	Unanswered
	figures
)

// unprobed lists the policies that use only the project and this sidecar's own jobs, so that a probe would change
// nothing. A single process that sees every job sends no probes either, because it knows the load already.
var unprobed = []string{"bounded-hash", "least-in-flight", "p2c-ewma", "plan"}

// leastWait replaces shorter waits in the result of a run, in seconds: nobody notices them.
const leastWait = 0.010

// Play simulates the jobs with upstreams whose caches have the given number of bytes.
func (c Contender) Play(ctx context.Context, s *Setting, jobs []trace.Job, cache int64, seed uint64) (o Outcome, err error) {
	cfg := sim.Config{Source: slices.Values(jobs), Seed: seed, WarmUp: s.WarmUp, Fleet: s.Fleet, Sidecars: s.Sidecars}
	if cfg.Policy, cfg.Detector, err = c.policy(float64(s.Fleet.Cores)); err != nil {
		return o, err
	}
	cfg.Fleet.Cache = settings.Size(cache)
	if plan, ok := cfg.Policy.(*rivals.Plan); ok {
		plan.Know(slices.Values(jobs), s.Fleet.Addresses())
	}
	if c.Alone {
		cfg.Sidecars.Count = 1
	}
	cfg.Sidecars.Hedge = c.Hedged
	cfg.Sidecars.Probe = s.Sidecars.Probe && !c.Alone && !c.Unprobed && !slices.Contains(unprobed, c.Policy)
	cfg.Sidecars.Withdraw = s.Sidecars.Withdraw && (c.Alone || c.Policy == "expected")
	if c.Queued {
		cfg.Fleet.Order = "arrival"
	}
	flood := uint64(0)
	if s.Flood {
		flood = mostOf(jobs)
	}
	run, count, unanswered := stats.NewRun(), 0.0, 0.0
	cfg.Observe = func(r *sim.Result) {
		count++
		if r.Outcome != sim.Done {
			unanswered++
		}
		if !r.Prefetch && r.Project != flood {
			run.AddStalled(r.Priority, r.Wait.Seconds(), r.Run.Seconds(), r.Stalled.Seconds())
		}
	}
	totals, err := sim.Run(ctx, cfg)
	o[Fetches], o[Unanswered] = 1000*float64(totals.Fetches)/max(1, count), 1000*unanswered/max(1, count)
	for first, s := range map[int]stats.Summary{
		Low: run.Summary(selection.Low, stats.Wait), High: run.Summary(selection.High, stats.Wait),
		Waits: run.Summary(selection.Low, stats.AllWaits), HighWaits: run.Summary(selection.High, stats.AllWaits),
	} {
		o[first], o[first+1] = max(leastWait, s.Mean), max(leastWait, s.P99)
	}
	o[Time] = max(leastWait, run.Summary(selection.Low, stats.Duration).Mean)
	return o, err
}

// policy returns the contender's policy and overload detection for upstreams with this number of cores.
func (c Contender) policy(cores float64) (p selection.Policy, d func() overload.Detector, err error) {
	detection := overload.Default()
	switch c.Policy {
	case "bounded-hash":
		p = selection.BoundedHash{Factor: c.Limit}
	case "reported-hash":
		p = rivals.ReportedHash{Factor: c.Limit}
	case "cache-threshold":
		p = rivals.CacheThreshold{By: c.Limit}
	default:
		if p, err = rivals.New(c.Policy); err != nil {
			return nil, nil, err
		}
	}
	if c.Policy == "dynamic" {
		detection.Policy, detection.Stalled = cmp.Or(c.Overload, "threshold"), c.Limit*cores
	}
	d, err = rivals.NewDetector(detection)
	return p, d, err
}
