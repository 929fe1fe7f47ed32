// Package scenario reads a scenario file, simulates its runs, and writes the results. A scenario
// describes the jobs, the upstreams, the sidecars, and the runs to compare.
package scenario

import (
	"time"

	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/workload"
)

// Scenario is one YAML file.
type Scenario struct {
	name string // of the file, without its extension
	// Seed is the seed of the first trial of each run, Seeds the number of trials. Each trial has the next seed.
	Seed  uint64 `yaml:"seed"`
	Seeds int    `yaml:"seeds"`

	// Workload describes the jobs to generate.
	Workload workload.Config `yaml:"workload"`

	Fleet    sim.Fleet    `yaml:"fleet"`
	Sidecars sim.Sidecars `yaml:"sidecars"`
	// End stops every run. Jobs that have not ended by then do not count, as
	// in the thesis (10.1). 0 simulates until the last job ends.
	End time.Duration `yaml:"end"`
	// WarmUp is the time at the start that does not count: neither jobs that arrive in it nor counts of the upstreams.
	WarmUp time.Duration `yaml:"warm_up"`
	// Reference names published results to print next to ours, as in published.read. The path is relative to the
	// scenario's folder.
	Reference string `yaml:"reference"`
	published published
	// Runs are the runs; each is compared with the first one.
	Runs []Run `yaml:"runs"`
	// Drawn records the jobs and the upstreams of each run's first seed for figures.
	Drawn bool `yaml:"-"`
}

// Run is one of the configurations to compare. Its default values are the scenario's.
type Run struct {
	Name string `yaml:"name"` // also the name of the published row to print next to it
	// Overload is the overload detection policy, Stalled its limit in stalled
	// joblets. An overload ends below Reset times the limit. IgnoreWait makes stalled joblets
	// the only input of dagor. The thesis uses a Reset of 1, and ignores waits.
	Overload   string  `yaml:"overload"`
	Stalled    float64 `yaml:"stalled"`
	Reset      float64 `yaml:"reset"`
	IgnoreWait bool    `yaml:"ignore_wait"`
	// Policy is the selection policy. Times multiplies constants of the policy expected.
	Policy string             `yaml:"policy"`
	Times  map[string]float64 `yaml:"times"`

	// These override single keys of the scenario's sections.
	Workload workload.Config `yaml:"workload"`
	Fleet    sim.Fleet       `yaml:"fleet"`
	Sidecars sim.Sidecars    `yaml:"sidecars"`
}
