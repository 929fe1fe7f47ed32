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
	"time"

	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// Config is one run: the jobs, the fleet, the sidecars before it, and how they
// choose. Start Fleet and Sidecars from their defaults.
type Config struct {
	// Source is the jobs; required.
	Source trace.Source
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
