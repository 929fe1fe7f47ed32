package scenario

import (
	"fmt"
	"time"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/settings"
)

// The largest numbers that make sense; they bound memory.
const (
	maxUpstreams = 10_000
	maxCores     = 1 << 16
	maxSidecars  = 100_000
)

// fleet is the modelled upstreams.
type fleet struct {
	// Upstreams is how many there are.
	Upstreams int `yaml:"upstreams"`
	// Cores and Cache are of each upstream.
	Cores int           `yaml:"cores"`
	Cache settings.Size `yaml:"cache"`
	// Backlog is how many stalled joblets keep an upstream from accepting
	// connections; with 0 no number does.
	Backlog int `yaml:"backlog"`
	// Preemption is how upstreams come and go; without it they stay.
	Preemption *preemption `yaml:"preemption"`
}

// defaultFleet is the thesis's.
func defaultFleet() fleet { return fleet{Upstreams: 14, Cores: 16, Cache: 64 << 30} }

func (v fleet) Check(f *settings.Faults) {
	f.Within("upstreams", v.Upstreams, 1, maxUpstreams)
	f.Within("cores", v.Cores, 1, maxCores)
	f.Within("backlog", v.Backlog, 0, 1<<30)
	if v.Preemption != nil {
		v.Preemption.check(f.In("preemption"), v.Upstreams)
	}
}

// complete fills in what depends on other keys.
func (v *fleet) complete() {
	if p := v.Preemption; p != nil && p.Upstreams == 0 {
		p.Upstreams = min(10, v.Upstreams)
	}
}

// preemption is how upstreams come and go.
type preemption struct {
	// Upstreams is how many are pre-emptible, the first ones. 0 is 10, or all if
	// there are fewer.
	Upstreams int `yaml:"upstreams"`
	// Early is the share of lives that end before Life, at a time uniform over it.
	Early float64 `yaml:"early"`
	// Life is the longest life. Notice comes so long before its end.
	Life   time.Duration `yaml:"life"`
	Notice time.Duration `yaml:"notice"`
	// AwayMin and AwayMax bound how long an upstream stays away.
	AwayMin time.Duration `yaml:"away_min"`
	AwayMax time.Duration `yaml:"away_max"`
	// Discovery is how long the sidecars take to hear of a change.
	Discovery time.Duration `yaml:"discovery"`
}

// SetDefaults fills in what a scenario leaves open.
func (p *preemption) SetDefaults() {
	*p = preemption{
		Life:      24 * time.Hour,
		Notice:    30 * time.Second,
		AwayMin:   5 * time.Minute,
		AwayMax:   10 * time.Minute,
		Discovery: 2 * time.Second,
	}
}

func (p *preemption) check(f *settings.Faults, upstreams int) {
	f.Within("upstreams", p.Upstreams, 1, upstreams)
	if !(p.Early >= 0 && p.Early <= 1) {
		f.Add("early", "%v is not a share from 0 to 1", p.Early)
	}
	f.Positive("notice", p.Notice)
	f.Positive("away_min", p.AwayMin)
	f.Positive("discovery", p.Discovery)
	if p.Life <= p.Notice {
		f.Add("life", "%v is not longer than the notice, %v", p.Life, p.Notice)
	}
	if p.AwayMax < p.AwayMin {
		f.Add("away_max", "%v is less than away_min, %v", p.AwayMax, p.AwayMin)
	}
}

// sidecars is how the sidecars are set up.
type sidecars struct {
	Count int `yaml:"count"`
	// Interval is the time between two reports of one upstream to one sidecar.
	Interval time.Duration `yaml:"interval"`
	// Hints turns on the load hint on answers.
	Hints bool `yaml:"hints"`
	// Attempts bounds the attempts of a job.
	Attempts int `yaml:"attempts"`
	// ConnectTimeout is how long a connection may take; it doubles after it has
	// passed. "never" waits until the upstream accepts, as the thesis's
	// experiments did.
	ConnectTimeout patience `yaml:"connect_timeout"`
	// Budget is the share of the jobs that may be retried.
	Budget  float64          `yaml:"budget"`
	Breaker breaker.Settings `yaml:"breaker"`
	// Wait bounds the wait of jobs that do not say how long they wait.
	Wait time.Duration `yaml:"wait"`
	// Freeze is a time in which no reports come.
	Freeze freeze `yaml:"freeze"`
}

// defaultSidecars is the thesis's one scheduler, with the sidecar's own retries.
func defaultSidecars() sidecars {
	retry := dispatch.DefaultRetry()
	return sidecars{
		Count:          1,
		Interval:       5 * time.Second,
		Attempts:       retry.Attempts,
		ConnectTimeout: patience(retry.ConnectTimeout),
		Budget:         retry.Budget,
		Breaker:        breaker.Default(),
		Wait:           240 * time.Second,
	}
}

func (v sidecars) Check(f *settings.Faults) {
	f.Within("count", v.Count, 1, maxSidecars)
	f.Positive("interval", v.Interval)
	f.Within("attempts", v.Attempts, 1, 100)
	if !(v.Budget > 0 && v.Budget <= 1) {
		f.Add("budget", "%v is not a share above 0 and up to 1", v.Budget)
	}
	v.Breaker.Check(f.In("breaker"))
	f.Positive("wait", v.Wait)
	if v.Freeze.At < 0 {
		f.Add("freeze.at", "%v must not be negative", v.Freeze.At)
	}
	if v.Freeze.For < 0 {
		f.Add("freeze.for", "%v must not be negative", v.Freeze.For)
	}
}

// freeze begins At into the run and lasts For; 0 is no freeze.
type freeze struct {
	At  time.Duration `yaml:"at"`
	For time.Duration `yaml:"for"`
}

// patience is a time limit, or none: negative.
type patience time.Duration

// UnmarshalText reads a duration such as 1s, or never.
func (p *patience) UnmarshalText(text []byte) error {
	if string(text) == "never" {
		*p = -1
		return nil
	}
	d, err := time.ParseDuration(string(text))
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is neither a time above 0, such as 1s, nor never", text)
	}
	*p = patience(d)
	return nil
}

// String is what the scenario says.
func (p patience) String() string {
	if p < 0 {
		return "never"
	}
	return time.Duration(p).String()
}
