package sim

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

// Fleet is the modelled upstreams.
type Fleet struct {
	// Upstreams is how many there are.
	Upstreams int `yaml:"upstreams"`
	// Cores and Cache are of each upstream.
	Cores int           `yaml:"cores"`
	Cache settings.Size `yaml:"cache"`
	// Backlog is how many stalled joblets keep an upstream from accepting
	// connections; with 0 no number does.
	Backlog int `yaml:"backlog"`
	// Preemption is how upstreams come and go; without it they stay.
	Preemption *Preemption `yaml:"preemption"`
}

// DefaultFleet is the thesis's.
func DefaultFleet() Fleet { return Fleet{Upstreams: 14, Cores: 16, Cache: 64 << 30} }

// Check refuses nonsense.
func (v Fleet) Check(f *settings.Faults) {
	f.Within("upstreams", v.Upstreams, 1, maxUpstreams)
	f.Within("cores", v.Cores, 1, maxCores)
	f.AtLeast("cache", int64(v.Cache), 1)
	f.Within("backlog", v.Backlog, 0, 1<<30)
	if v.Preemption != nil {
		v.Preemption.check(f.In("preemption"), v.Upstreams)
	}
}

// Preemption is how upstreams come and go.
type Preemption struct {
	// Upstreams is how many are pre-emptible, the first ones. In a scenario 0 is
	// 10, or all if there are fewer.
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
func (p *Preemption) SetDefaults() {
	*p = Preemption{
		Life:      24 * time.Hour,
		Notice:    30 * time.Second,
		AwayMin:   5 * time.Minute,
		AwayMax:   10 * time.Minute,
		Discovery: 2 * time.Second,
	}
}

func (p *Preemption) check(f *settings.Faults, upstreams int) {
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

// Sidecars is how the sidecars are set up.
type Sidecars struct {
	Count int `yaml:"count"`
	// Interval is the time between two reports of one upstream to one sidecar.
	Interval time.Duration `yaml:"interval"`
	// Hints turns on the load hint on answers.
	Hints bool `yaml:"hints"`
	// Attempts, ConnectTimeout and Budget are as in dispatch.RetrySettings. The
	// ConnectTimeout "never" waits until the upstream accepts, as the thesis's
	// experiments did.
	Attempts       int              `yaml:"attempts"`
	ConnectTimeout Patience         `yaml:"connect_timeout"`
	Budget         float64          `yaml:"budget"`
	Breaker        breaker.Settings `yaml:"breaker"`
	// Wait bounds the wait of jobs that do not say how long they wait.
	Wait time.Duration `yaml:"wait"`
	// Freeze is a time in which no reports come.
	Freeze Freeze `yaml:"freeze"`
}

// DefaultSidecars is the thesis's one scheduler, with the sidecar's own retries.
func DefaultSidecars() Sidecars {
	retry := dispatch.DefaultRetry()
	return Sidecars{
		Count:          1,
		Interval:       5 * time.Second,
		Attempts:       retry.Attempts,
		ConnectTimeout: Patience(retry.ConnectTimeout),
		Budget:         retry.Budget,
		Breaker:        breaker.Default(),
		Wait:           240 * time.Second,
	}
}

// Check refuses nonsense.
func (v Sidecars) Check(f *settings.Faults) {
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

// Freeze begins At into the run and lasts For; 0 is no freeze.
type Freeze struct {
	At  time.Duration `yaml:"at"`
	For time.Duration `yaml:"for"`
}

// Patience is a time limit, or none: negative.
type Patience time.Duration

// UnmarshalText reads a duration such as 1s, or never.
func (p *Patience) UnmarshalText(text []byte) error {
	if string(text) == "never" {
		*p = -1
		return nil
	}
	d, err := time.ParseDuration(string(text))
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is neither a time above 0, such as 1s, nor never", text)
	}
	*p = Patience(d)
	return nil
}

// String is what the scenario says.
func (p Patience) String() string {
	if p < 0 {
		return "never"
	}
	return time.Duration(p).String()
}

// retry is what the sidecars' dispatchers are set to.
func (v *Sidecars) retry() dispatch.RetrySettings {
	r := dispatch.DefaultRetry()
	r.Attempts, r.Budget = v.Attempts, v.Budget
	if v.ConnectTimeout > 0 { // never: the default still bounds the dial to a server that is gone
		r.ConnectTimeout = time.Duration(v.ConnectTimeout)
	}
	return r
}
