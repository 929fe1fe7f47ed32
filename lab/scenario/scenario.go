// Package scenario reads a scenario file, plays it, and shows what comes of it: the jobs, the
// upstreams, the sidecars before them, and the runs to compare.
package scenario

import (
	"time"

	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/workload"
	"example.org/pilotfish/pkg/selection"
)

// Scenario is one YAML file.
type Scenario struct {
	name string // the file's
	// Seed is the seed of the first trial of each run, and Seeds how many trials each run has: each takes the next seed.
	Seed  uint64 `yaml:"seed"`
	Seeds int    `yaml:"seeds"`

	// Workload describes the jobs to generate.
	Workload workload.Config `yaml:"workload"`

	Fleet    sim.Fleet    `yaml:"fleet"`
	Sidecars sim.Sidecars `yaml:"sidecars"`
	// End stops every run. Jobs that have not ended by then are not counted, as
	// in the thesis (10.1). 0 plays until the last job ends.
	End time.Duration `yaml:"end"`
	// WarmUp is left out: jobs that arrive before it is over, and what is counted of the upstreams until then.
	WarmUp time.Duration `yaml:"warm_up"`
	// Reference names published results to show beside ours: NAME-results.csv and NAME-wait-variance.csv. Its path
	// is relative to the scenario's folder.
	Reference string `yaml:"reference"`
	published published
	// Runs are compared with the first.
	Runs []Run `yaml:"runs"`
	// Drawn has the jobs and the upstreams of each run's first seed kept for figures.
	Drawn bool `yaml:"-"`
}

// Run is one set-up that is compared with others. What it leaves open is the scenario's.
type Run struct {
	Name string `yaml:"name"` // also that of the published row to show beside it
	// Overload is the overload detection policy, Stalled its limit, in stalled
	// joblets. Reset is the share of it that ends an overload. IgnoreWait makes stalled joblets
	// the only input of dagor. The thesis has a Reset of 1, and ignores waits.
	Overload   string  `yaml:"overload"`
	Stalled    float64 `yaml:"stalled"`
	Reset      float64 `yaml:"reset"`
	IgnoreWait bool    `yaml:"ignore_wait"`
	// Policy is the selection policy. Times multiplies constants of the policy expected.
	Policy string             `yaml:"policy"`
	Times  map[string]float64 `yaml:"times"`

	// These replace keys of the scenario's, one by one.
	Workload workload.Config `yaml:"workload"`
	Fleet    sim.Fleet       `yaml:"fleet"`
	Sidecars sim.Sidecars    `yaml:"sidecars"`
}

// constants are those of the policy expected that a run may multiply.
func constants(e *selection.Expected) map[string]*float64 {
	return map[string]*float64{
		"spare": &e.Spare, "fetch": &e.Fetch, "rank": &e.Rank, "crowding": &e.Crowding, "tail": &e.Tail,
	}
}
