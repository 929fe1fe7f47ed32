package sim

import (
	"fmt"
	"time"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/settings"
)

// maxSidecars is the largest number that makes sense; it bounds memory.
const maxSidecars = 100_000

// Sidecars is how the sidecars are set up.
type Sidecars struct {
	Count int `yaml:"count"`
	// Interval is the time between two reports of one upstream to one sidecar.
	Interval time.Duration `yaml:"interval"`
	// Lag is how long a report takes to arrive. Together makes all sidecars see
	// the same reports, as those of one Prometheus server.
	Lag      time.Duration `yaml:"lag"`
	Together bool          `yaml:"together"`
	// Hints turns on the load hint on answers.
	Hints bool `yaml:"hints"`
	// Begun makes upstreams tell when a job begins. SecondThoughts is as in dispatch;
	// Blind moves late jobs also where upstreams do not tell.
	Begun          bool                    `yaml:"begun"`
	Blind          bool                    `yaml:"blind"`
	SecondThoughts dispatch.SecondThoughts `yaml:"second_thoughts"`
	// Copies leaves a late job where it is, and sends a copy of it to where it would move.
	// The first answer wins.
	Copies bool `yaml:"copies"`
	// Bytes makes jobs tell the size of their project's data.
	Bytes bool `yaml:"bytes"`
	// Attempts, ConnectTimeout and Budget are as in dispatch.RetrySettings. The
	// ConnectTimeout "never" waits until the upstream accepts, as the thesis's
	// experiments did.
	Attempts       int      `yaml:"attempts"`
	ConnectTimeout Patience `yaml:"connect_timeout"`
	// CountTimeouts makes a connection that takes too long count as an attempt, and not
	// open a breaker, as in the thesis's system.
	CountTimeouts bool             `yaml:"count_timeouts"`
	Budget        float64          `yaml:"budget"`
	Breaker       breaker.Settings `yaml:"breaker"`
	// Projects is as in the sidecar's own configuration.
	Projects dispatch.ProjectSettings `yaml:"projects"`
	// Reserve is the share of an upstream's cores that low jobs do not see, for each
	// share of high jobs among all; 0 reserves nothing.
	Reserve float64 `yaml:"reserve"`
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
		SecondThoughts: dispatch.DefaultSecondThoughts(),
	}
}

// Check refuses nonsense.
func (v Sidecars) Check(f *settings.Faults) {
	f.Within("count", v.Count, 1, maxSidecars)
	f.Positive("interval", v.Interval)
	f.NotNegative("lag", v.Lag)
	f.Within("attempts", v.Attempts, 1, 100)
	if !(v.Budget > 0 && v.Budget <= 1) {
		f.Add("budget", "%v is not a share above 0 and up to 1", v.Budget)
	}
	v.Breaker.Check(f.In("breaker"))
	v.Projects.Check(f.In("projects"))
	v.SecondThoughts.Check(f.In("second_thoughts"))
	f.Between("reserve", v.Reserve, 0, 1)
	f.Positive("wait", v.Wait)
	f.NotNegative("freeze.at", v.Freeze.At)
	f.NotNegative("freeze.for", v.Freeze.For)
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
