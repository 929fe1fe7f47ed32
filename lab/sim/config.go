// Package sim runs sidecars and modelled rule processing servers against a
// trace, in simulated time: one loop and one heap of events, no goroutines.
//
// The sidecars run pilotfish's own code: internal/dispatch, internal/pool, pkg/selection and internal/overload. Only
// servers, network and time are modelled. A server is the executor of the thesis (3.4, 3.5): it has cores, a queue of
// joblets (tasks of jobs) ordered by priority and then submission, and a bounded cache of results that evicts the
// oldest first. Equal joblets are computed once.
package sim

import (
	"iter"
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// Config describes one run: the jobs, the fleet, the sidecars in front of it and their
// policies. Start from DefaultFleet and DefaultSidecars.
type Config struct {
	// Source yields the jobs in the order of their offsets; required.
	Source iter.Seq[trace.Job]
	// Observe is called once for each job that ends; required.
	Observe func(*Result)
	// Sample, if not nil, is called every LookEvery with the upstreams' states as known to the first sidecar.
	Sample      func(at time.Duration, states []pool.State)
	SampleEvery time.Duration
	// Seed seeds all random streams of the run.
	Seed uint64
	// End stops the run; unfinished jobs are not observed. 0 runs until the last job ends.
	End time.Duration
	// WarmUp is a period without measurement: jobs that arrive in it are not observed,
	// and the servers' work in it is not in the Totals.
	WarmUp time.Duration

	// Policy chooses upstreams; required.
	Policy selection.Policy
	// Detector creates the overload detector of an upstream; required.
	Detector func() overload.Detector

	Fleet    Fleet
	Sidecars Sidecars
}

// Sidecars configures the sidecars.
type Sidecars struct {
	Count int `yaml:"count"`
	// Interval is the time between two polls of one upstream by one sidecar.
	Interval time.Duration `yaml:"interval"`
	// Lag is the delay of a report. Together gives all sidecars the same reports, as
	// with one Prometheus server.
	Lag      time.Duration `yaml:"-"`
	Together bool          `yaml:"-"`
	// Hints turns on the load hints in responses.
	Hints bool `yaml:"hints"`
	// Probe turns on probes of upstreams before jobs are claimed.
	Probe bool `yaml:"probe"`
	// Untold sends upstreams no expected durations of jobs. Unpolled turns polling off.
	Untold   bool `yaml:"-"`
	Unpolled bool `yaml:"-"`
	// OneKey gives sidecars only a job's project, not the other data that the job needs.
	OneKey bool `yaml:"one_key"`
	// LengthKey lets sidecars learn the durations of jobs by project and channel, as with job.length_key.
	LengthKey bool `yaml:"length_key"`
	// Attempts and Budget are as in dispatch.RetrySettings.
	Attempts int `yaml:"-"`
	// CountTimeouts treats a connect timeout as a failed attempt, as the thesis's system does: it
	// counts towards Attempts, and one timeout alone opens no breaker.
	CountTimeouts bool            `yaml:"count_timeouts"`
	Budget        float64         `yaml:"budget"`
	Breaker       health.Settings `yaml:"breaker"`
	// Projects is as in the sidecar's own configuration.
	Projects dispatch.ProjectSettings `yaml:"-"`
	// Leave is the time a person waits for the first byte of a high-priority job before cancelling it; 0 never cancels.
	// Again is the maximum number of times a person resubmits the job.
	Leave time.Duration `yaml:"leave"`
	Again int           `yaml:"again"`
	// Withdraw makes upstreams withdraw waiting jobs on request.
	Withdraw bool `yaml:"withdraw"`
	// Hedge sends a copy of each job to an idle upstream, if there is one.
	Hedge bool `yaml:"hedge"`
	// Wait is the queue timeout of jobs that do not have one.
	Wait time.Duration `yaml:"-"`
}

// DefaultSidecars returns a single sidecar, like the thesis's scheduler, with pilotfish's default retries.
func DefaultSidecars() Sidecars {
	retry := dispatch.DefaultRetry()
	return Sidecars{
		Count:    1,
		Interval: 5 * time.Second,
		Attempts: retry.Attempts,
		Budget:   retry.Budget,
		Breaker:  health.Default(),
		Wait:     240 * time.Second,
	}
}

// maxAgain is the upper bound of Sidecars.Again.
const maxAgain = 100

// Check adds invalid values to f.
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
