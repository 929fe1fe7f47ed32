// Package sim runs sidecars and modelled rule processing servers against a
// trace, in simulated time: one loop and one heap of events, no goroutines.
//
// The sidecars are the real thing: internal/dispatch, internal/pool,
// pkg/selection and internal/overload are the code that pilotfish
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

	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
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
	// Seed is that of every random stream of the run.
	Seed uint64
	// End stops the run; jobs that are not finished are not observed. 0 runs
	// until the last job ends.
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

// check refuses nonsense.
func (c *Config) check() error {
	if c.Source == nil || c.Observe == nil || c.Detector == nil || c.Policy == nil {
		return errors.New("sim: Source, Observe, Detector and Policy are required")
	}
	var f settings.Faults
	c.Fleet.Check(f.In("fleet"))
	c.Sidecars.Check(f.In("sidecars"))
	if err := f.Err(); err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	return nil
}
