package sim

import (
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
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
	Lag      time.Duration `yaml:"-"`
	Together bool          `yaml:"-"`
	// Hints turns on the load hint on answers.
	Hints bool `yaml:"hints"`
	// OneKey tells sidecars a job's project alone, whatever else it needs.
	OneKey bool `yaml:"one_key"`
	// Attempts and Budget are as in dispatch.RetrySettings.
	Attempts int `yaml:"-"`
	// CountTimeouts makes a connection that takes too long fail like an attempt that was sent:
	// it counts, and opens no breaker at once, as in the thesis's system.
	CountTimeouts bool                 `yaml:"count_timeouts"`
	Budget        float64              `yaml:"budget"`
	Breaker       pool.BreakerSettings `yaml:"breaker"`
	// Projects is as in the sidecar's own configuration.
	Projects dispatch.ProjectSettings `yaml:"-"`
	// Wait bounds the wait of jobs that do not say how long they wait.
	Wait time.Duration `yaml:"-"`
}

// DefaultSidecars is the thesis's one scheduler, with the sidecar's own retries.
func DefaultSidecars() Sidecars {
	retry := dispatch.DefaultRetry()
	return Sidecars{
		Count:    1,
		Interval: 5 * time.Second,
		Attempts: retry.Attempts,
		Budget:   retry.Budget,
		Breaker:  pool.DefaultBreaker(),
		Wait:     240 * time.Second,
	}
}

// Check refuses nonsense.
func (v Sidecars) Check(f *settings.Faults) {
	f.Within("count", v.Count, 1, maxSidecars)
	f.Positive("interval", v.Interval)
	if !(v.Budget > 0 && v.Budget <= 1) {
		f.Add("budget", "%v is not a share above 0 and up to 1", v.Budget)
	}
	v.Breaker.Check(f.In("breaker"))
}
