// Package scenario reads a scenario file and plays it: the jobs, the upstreams,
// the sidecars before them, and the runs to compare.
package scenario

import (
	"io"
	"os"
	"time"

	"example.org/pilotfish/internal/lab/sim"
	"example.org/pilotfish/internal/lab/stats"
	"example.org/pilotfish/internal/lab/workload"
	"example.org/pilotfish/pkg/selection"
)

// Scenario is one YAML file.
type Scenario struct {
	// Name heads the report; the file's name by default.
	Name string `yaml:"name"`
	// Seed is the seed of the first trial of each run, and Seeds how many trials
	// each run has: each takes the next seed.
	Seed  uint64 `yaml:"seed"`
	Seeds int    `yaml:"seeds"`

	// Workload describes the jobs to generate. Trace is a file that holds the
	// jobs instead; its path is relative to the scenario's folder. Without both,
	// the jobs are workload.Default.
	Workload *workload.Config `yaml:"workload"`
	Trace    string           `yaml:"trace"`
	// Speed divides the offsets of the trace's jobs: 2 sends them in half the time.
	// What they cost stays.
	Speed float64 `yaml:"speed"`

	Fleet      sim.Fleet      `yaml:"fleet"`
	Sidecars   sim.Sidecars   `yaml:"sidecars"`
	Submitters sim.Submitters `yaml:"submitters"`
	// End stops every run. Jobs that have not ended by then are not counted, as
	// in the thesis (10.1). 0 plays until the last job ends.
	End time.Duration `yaml:"end"`
	// WarmUp is left out: jobs that arrive before it is over, and what is counted
	// of the upstreams until then.
	WarmUp time.Duration `yaml:"warm_up"`
	// Sample is the time between two samples of the upstreams, for the figures
	// over time.
	Sample time.Duration `yaml:"sample"`

	// Apart shows the jobs of the first crowd's project apart from all others.
	Apart bool `yaml:"apart"`

	// Reference is published results to show beside ours.
	Reference Reference `yaml:"reference"`
	// Base names the run that the others are compared with; the first run by default.
	Base string `yaml:"base"`
	Runs []Run  `yaml:"runs"`

	jobs jobs
}

func defaults() Scenario {
	return Scenario{
		Seed: 1, Seeds: 1, Speed: 1, Fleet: sim.DefaultFleet(), Sidecars: sim.DefaultSidecars(), Sample: 10 * time.Second,
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
	// Policy is the selection policy, or clairvoyant.
	Policy   string   `yaml:"policy"`
	Expected expected `yaml:"expected"`
	// Bound is the factor of bounded-hash; 0 is its default.
	Bound float64 `yaml:"bound"`

	// These replace keys of the scenario's, one by one; lists are replaced whole.
	Workload   *workload.Config `yaml:"workload"`
	Fleet      sim.Fleet        `yaml:"fleet"`
	Sidecars   sim.Sidecars     `yaml:"sidecars"`
	Submitters sim.Submitters   `yaml:"submitters"`

	// Against names the run to compare with, instead of the scenario's base.
	Against string `yaml:"against"`
	// Reference names the published row to show beside this run; Name by default.
	Reference string `yaml:"reference"`

	jobs jobs
}

// dagor sets the policy of that name.
type dagor struct {
	// IgnoreWait makes stalled joblets its only input, as in the thesis.
	IgnoreWait bool `yaml:"ignore_wait"`
}

// expected sets the policy of that name.
type expected struct {
	selection.ExpectedConfig `yaml:",inline"`
	// Off lists the parts to switch off.
	Off []string `yaml:"off"`
}

// Reference names the files with published results. Paths are relative to the
// scenario's folder.
type Reference struct {
	Results  string `yaml:"results"`
	Variance string `yaml:"wait_variance"`
}

// Read reads the files that are named.
func (r *Reference) Read() (stats.Tables, error) {
	rows, err := readTable(r.Results, stats.ReadRows)
	if err != nil {
		return stats.Tables{}, err
	}
	variances, err := readTable(r.Variance, stats.ReadVariances)
	return stats.Tables{Rows: rows, Variances: variances}, err
}

// readTable reads a file, if there is a path.
func readTable[R any](path string, read func(io.Reader, string) ([]R, error)) ([]R, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(f, path)
}
