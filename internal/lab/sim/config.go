// Package sim runs sidecars and modelled rule processing servers against a
// trace, in simulated time: one loop and one heap of events, no goroutines.
//
// The sidecars are the real thing: internal/dispatch, internal/pool,
// internal/breaker, pkg/selection and pkg/overload are the code that pilotfish
// runs. Only the servers, the network between and the passing of time are
// modelled. A server is the executor of the thesis (3.4, 3.5): it has cores, a
// queue of joblets ordered by priority and then submission, and a cache of
// results of bounded size that evicts the oldest. Equal joblets are computed
// once.
package sim

import (
	"errors"
	"fmt"
	"time"

	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/overload"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/trace"
)

// Source yields a trace's jobs in order of their offsets.
type Source interface {
	// Next returns the next job, or io.EOF at the end.
	Next() (trace.Job, error)
}

// Config is one run: the jobs, the fleet, the sidecars before it, and how they
// choose. Start Fleet and Sidecars from their defaults.
type Config struct {
	// Source is the jobs; required.
	Source Source
	// Observe is called once for each job that ends; required.
	Observe func(*Result)
	// Sample is called every SampleEvery for the figures over time; optional.
	Sample      func(*Sample)
	SampleEvery time.Duration
	// Seed is that of every random stream of the run.
	Seed uint64
	// End stops the run; jobs that are not finished are not observed. 0 runs
	// until the last job ends.
	End time.Duration
	// WarmUp is left out: jobs that arrive before it is over are not observed, and
	// what servers do until then is not in the Totals.
	WarmUp time.Duration

	// Policy chooses upstreams; required unless Clairvoyant chooses. That is a limit to
	// compare with: it knows the true state of every server and the length of every joblet.
	Policy      selection.Policy
	Clairvoyant bool
	// Detector makes what says how much an upstream may take; required.
	Detector func() overload.Detector

	Fleet      Fleet
	Sidecars   Sidecars
	Submitters Submitters
}

// policy is that of one sidecar.
func (c *Config) policy() selection.Policy {
	if c.Sidecars.Reserve == 0 {
		return c.Policy
	}
	return &reserve{Policy: c.Policy, weight: c.Sidecars.Reserve}
}

// check refuses nonsense.
func (c *Config) check() error {
	if c.Source == nil || c.Observe == nil || c.Detector == nil || (c.Policy == nil) != c.Clairvoyant {
		return errors.New("sim: Source, Observe, Detector, and either Policy or Clairvoyant are required")
	}
	if c.Sample != nil && c.SampleEvery <= 0 {
		return fmt.Errorf("sim: SampleEvery %v must be positive", c.SampleEvery)
	}
	var f settings.Faults
	c.Fleet.Check(f.In("fleet"))
	c.Sidecars.Check(f.In("sidecars"))
	c.Submitters.Check(f.In("submitters"))
	if err := f.Err(); err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	return nil
}
