// Package scenario reads a scenario file and plays it: the jobs, the upstreams,
// the sidecars before them, and the runs to compare.
package scenario

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/stats"
	"example.org/pilotfish/lab/workload"
)

// Scenario is one YAML file.
type Scenario struct {
	// Name heads the report; the file's name by default.
	Name string `yaml:"name"`
	// Seed is the seed of the first trial of each run, and Seeds how many trials
	// each run has: each takes the next seed.
	Seed  uint64 `yaml:"seed"`
	Seeds int    `yaml:"seeds"`

	// Workload describes the jobs to generate.
	Workload workload.Config `yaml:"workload"`

	Fleet    sim.Fleet    `yaml:"fleet"`
	Sidecars sim.Sidecars `yaml:"sidecars"`
	// End stops every run. Jobs that have not ended by then are not counted, as
	// in the thesis (10.1). 0 plays until the last job ends.
	End time.Duration `yaml:"end"`
	// WarmUp is left out: jobs that arrive before it is over, and what is counted
	// of the upstreams until then.
	WarmUp time.Duration `yaml:"warm_up"`
	// Reference is a file with published results to show beside ours, as thesis.json. Its path is
	// relative to the scenario's folder.
	Reference string `yaml:"reference"`
	// Runs are compared with the first.
	Runs []Run `yaml:"runs"`
}

func defaults() Scenario {
	return Scenario{
		Seed: 1, Seeds: 1, Workload: workload.Default(), Fleet: sim.DefaultFleet(), Sidecars: sim.DefaultSidecars(),
	}
}

// Run is one set-up that is compared with others. What it leaves open is the
// scenario's.
type Run struct {
	Name string `yaml:"name"`
	// Overload is the overload detection policy, Stalled its limit, in stalled
	// joblets.
	Overload string  `yaml:"overload"`
	Stalled  float64 `yaml:"stalled"`
	Dagor    dagor   `yaml:"dagor"`
	// Times multiplies constants of the policy expected, 1 by default.
	Times factors `yaml:"times"`
	// Policy is the selection policy.
	Policy string `yaml:"policy"`

	// These replace keys of the scenario's, one by one; lists are replaced whole.
	Fleet    sim.Fleet    `yaml:"fleet"`
	Sidecars sim.Sidecars `yaml:"sidecars"`

	// Reference names the published row to show beside this run; Name by default.
	Reference string `yaml:"reference"`
}

// dagor sets the policy of that name.
type dagor struct {
	// IgnoreWait makes stalled joblets its only input, as in the thesis.
	IgnoreWait bool `yaml:"ignore_wait"`
}

// Published reads the results that Reference names; there are none without it.
func (s *Scenario) Published() (published stats.Tables, err error) {
	if s.Reference == "" {
		return published, nil
	}
	text, err := os.ReadFile(s.Reference)
	if err != nil {
		return published, err
	}
	if err := json.Unmarshal(text, &published); err != nil {
		return published, fmt.Errorf("%s: %w", s.Reference, err)
	}
	return published, nil
}
