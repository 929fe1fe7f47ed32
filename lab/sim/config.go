// Package sim runs sidecars and modelled rule processing servers against a
// trace, in simulated time: one loop and one heap of events, no goroutines.
//
// The sidecars are the real thing: internal/dispatch, internal/pool, pkg/selection and internal/overload are the code
// that pilotfish runs. Only the servers, the network between and the passing of time are modelled. A server is the
// executor of the thesis (3.4, 3.5): it has cores, a queue of joblets ordered by priority and then submission, and a
// cache of results of bounded size that evicts the oldest. Equal joblets are computed once.
package sim

import (
	"iter"
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// Config is one run: the jobs, the fleet, the sidecars before it, and how they
// choose. Start Fleet and Sidecars from their defaults.
type Config struct {
	// Source yields the jobs in the order of their offsets; required.
	Source iter.Seq[trace.Job]
	// Observe is called once for each job that ends; required.
	Observe func(*Result)
	// Look is called every LookEvery with the upstreams as the first sidecar sees them; nil is not called.
	Look      func(at time.Duration, states []pool.State)
	LookEvery time.Duration
	// Seed is that of every random stream of the run.
	Seed uint64
	// End stops the run; jobs that are not finished are not observed. 0 runs until the last job ends.
	End time.Duration
	// WarmUp is left out: jobs that arrive before it is over are not observed, and
	// what servers do until then is not in the Totals.
	WarmUp time.Duration

	// Policy chooses upstreams; required.
	Policy selection.Policy
	// Detector makes what says how much an upstream may take; required.
	Detector func() overload.Detector

	Fleet    Fleet
	Sidecars Sidecars
}

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
	// Untold tells upstreams nothing of how long jobs take, and Unpolled asks them nothing.
	Untold   bool `yaml:"-"`
	Unpolled bool `yaml:"-"`
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
	// Leave is how long a person waits for the first byte of a high job; 0 is as long as the job may. Again is how often
	// the job is sent again then.
	Leave time.Duration `yaml:"leave"`
	Again int           `yaml:"again"`
	// Hedge sends a copy of each job to an upstream that is idle, if there is one.
	Hedge bool `yaml:"hedge"`
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

// maxAgain bounds how often a person sends a job again.
const maxAgain = 100

// Check refuses nonsense.
func (v Sidecars) Check(f *settings.Faults) {
	f.Within("count", v.Count, 1, maxSidecars)
	f.Positive("interval", v.Interval)
	if !(v.Budget > 0 && v.Budget <= 1) {
		f.Add("budget", "%v is not a share above 0 and up to 1", v.Budget)
	}
	f.NotNegative("leave", v.Leave)
	f.Within("again", v.Again, 0, maxAgain)
	v.Breaker.Check(f.In("breaker"))
}
