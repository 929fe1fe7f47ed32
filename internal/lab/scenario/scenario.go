// Package scenario reads a scenario file and plays it: the jobs, the upstreams,
// the sidecars before them, and the runs to compare.
package scenario

import (
	"os"
	"time"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/lab/stats"
	"example.org/pilotfish/internal/lab/workload"
	"example.org/pilotfish/internal/settings"
)

// Scenario is one YAML file. A key that is absent or zero means its default.
type Scenario struct {
	// Name heads the report; the file's name by default.
	Name string `yaml:"name"`
	// Seed is the seed of the first trial of each run, and Seeds how many trials
	// each run has: each takes the next seed. Both are 1 by default.
	Seed  uint64 `yaml:"seed"`
	Seeds int    `yaml:"seeds"`

	// Workload describes the jobs to generate; the thesis's day by default.
	// Trace is a file that holds the jobs instead. Its path is relative to the
	// scenario's folder.
	Workload *workload.Config `yaml:"workload"`
	Trace    string           `yaml:"trace"`

	Fleet    fleet    `yaml:"fleet"`
	Sidecars sidecars `yaml:"sidecars"`
	// End stops every run. Jobs that have not ended by then are not counted, as
	// in the thesis (10.1). 0 plays until the last job ends.
	End time.Duration `yaml:"end"`
	// Sample is the time between two samples of the upstreams, for the figures
	// over time; 10 s.
	Sample time.Duration `yaml:"sample"`

	// Reference is published results to show beside ours.
	Reference Reference `yaml:"reference"`
	// Base names the run that the others are compared with; the first run by default.
	Base string `yaml:"base"`
	Runs []Run  `yaml:"runs"`

	jobs jobs // resolved from Workload or Trace
}

// Run is one set-up that is compared with others. What it leaves open is the
// scenario's.
type Run struct {
	Name string `yaml:"name"`
	// Overload is the overload detection policy; none by default. Stalled is its
	// limit, in stalled joblets; 100 by default.
	Overload string  `yaml:"overload"`
	Stalled  float64 `yaml:"stalled"`
	Dagor    dagor   `yaml:"dagor"`
	// Policy is the selection policy, or clairvoyant.
	Policy   string   `yaml:"policy"`
	Expected expected `yaml:"expected"`

	// Workload, Fleet and Sidecars replace keys of the scenario's, one by one.
	Workload *workload.Config `yaml:"workload"`
	Fleet    fleet            `yaml:"fleet"`
	Sidecars sidecars         `yaml:"sidecars"`

	// Against names the run to compare with, instead of the scenario's base.
	Against string `yaml:"against"`
	// Reference names the published row to show beside this run; Name by default.
	Reference string `yaml:"reference"`

	jobs jobs
}

// fleet is the modelled upstreams.
type fleet struct {
	Upstreams int           `yaml:"upstreams"` // 14
	Cores     int           `yaml:"cores"`     // of each: 16
	Cache     settings.Size `yaml:"cache"`     // of each: 64GiB
	// Backlog is how many stalled joblets keep an upstream from accepting
	// connections; no number does by default.
	Backlog    int         `yaml:"backlog"`
	Preemption *preemption `yaml:"preemption"`
}

// preemption is how upstreams come and go; they stay for ever by default.
type preemption struct {
	Upstreams int           `yaml:"upstreams"` // the first so many; 10
	Early     float64       `yaml:"early"`     // share of lives that end before their time; 0
	Life      time.Duration `yaml:"life"`      // 24h
	Notice    time.Duration `yaml:"notice"`    // 30s
	AwayMin   time.Duration `yaml:"away_min"`  // 5m
	AwayMax   time.Duration `yaml:"away_max"`  // 10m
	Discovery time.Duration `yaml:"discovery"` // 2s
}

// sidecars is how the sidecars are set up.
type sidecars struct {
	Count    int           `yaml:"count"`    // 1
	Interval time.Duration `yaml:"interval"` // of reports: 5s
	Hints    *bool         `yaml:"hints"`    // false
	Attempts int           `yaml:"attempts"` // 3
	// ConnectTimeout is for the first attempt and doubles after it has passed; 1s.
	// "never" waits until the upstream accepts.
	ConnectTimeout patience `yaml:"connect_timeout"`
	// Budget is the share of the jobs that may be retried; 0.2.
	Budget float64 `yaml:"budget"`
	// Breaker sets the breakers; a pilotfish's defaults.
	Breaker breaker.Settings `yaml:"breaker"`
	// Wait bounds the wait of jobs that do not say; 240s.
	Wait   time.Duration `yaml:"wait"`
	Freeze freeze        `yaml:"freeze"`
}

// freeze is a time in which no reports come; there is none by default.
type freeze struct {
	At  time.Duration `yaml:"at"`
	For time.Duration `yaml:"for"`
}

// dagor sets the policy of that name.
type dagor struct {
	// IgnoreWait makes stalled joblets its only input, as in the thesis.
	IgnoreWait bool `yaml:"ignore_wait"`
}

// expected sets the policy of that name.
type expected struct {
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
	var t stats.Tables
	if r.Results != "" {
		f, err := os.Open(r.Results)
		if err != nil {
			return t, err
		}
		defer f.Close()
		if t.Rows, err = stats.ReadRows(f, r.Results); err != nil {
			return t, err
		}
	}
	if r.Variance != "" {
		f, err := os.Open(r.Variance)
		if err != nil {
			return t, err
		}
		defer f.Close()
		if t.Variances, err = stats.ReadVariances(f, r.Variance); err != nil {
			return t, err
		}
	}
	return t, nil
}
