package health

import (
	"errors"
	"fmt"
)

// gate is the library's breaker. In a closed breaker it is entered for the first job since it closed; then done takes the
// results of all jobs.
type gate struct {
	allow Gate
	done  func(error) // nil until a job has entered
	force bool        // the next failure opens it, whatever the row
	opens bool        // the last failure opened it
}

var errFailed = errors.New("failed")

// renew replaces the gate by a closed one.
func (g *gate) renew(cfg *Config) {
	*g = gate{allow: cfg.Gate(func(inARow int) bool {
		g.opens = g.force || inARow >= cfg.Failures
		return g.opens
	})}
}

// enter reports whether the gate lets a job through.
func (g *gate) enter() bool {
	if g.done == nil {
		if done, err := g.allow(); err == nil {
			g.done = done
		}
	}
	return g.done != nil
}

// fail records a failure, and reports whether it opened a gate that was closed.
func (g *gate) fail(force bool) bool {
	if g.force, g.opens = force, false; g.done != nil {
		g.done(errFailed)
	}
	return g.opens
}

// Failure is the name of a kind of failure, in the singular and in the plural.
type Failure struct{ One, Many string }

// row is failures in a row.
type row struct {
	n     int
	mixed bool // of several kinds
	last  Failure
}

func (r *row) add(f Failure) {
	r.n, r.mixed, r.last = r.n+1, r.n > 0 && (r.mixed || r.last != f), f
}

// String says why enough failures opened the breaker.
func (r *row) String() string {
	switch {
	case r.n == 1:
		return r.last.One
	case r.mixed:
		return fmt.Sprintf("%d failures in a row, the last: %s", r.n, r.last.One)
	}
	return fmt.Sprintf("%d %s in a row", r.n, r.last.Many)
}

// fleet is what an upstream reports of the jobs of all sidecars that ended there. An upstream that fails every job at once
// costs each sidecar a few jobs before it knows; together they know after the first few.
type fleet struct {
	known         bool
	ended, failed float64 // the counters in the last report
	own           float64 // failures that this sidecar has seen since
	most          bool    // at least half of the jobs failed that ended between two reports
}

// report records the counters of a report, and returns how many jobs of other sidecars failed since the last one; 0 where
// that is unknown, or the upstream has restarted.
func (f *fleet) report(ended, failed float64) (others float64) {
	if ended < 0 || failed < 0 {
		*f = fleet{most: f.most}
		return 0
	}
	last := *f
	*f = fleet{known: true, ended: ended, failed: failed, most: f.most}
	ended, failed = ended-last.ended, failed-last.failed
	if !last.known || ended < 0 || failed < 0 {
		return 0
	}
	if ended > 0 {
		f.most = 2*failed >= ended
	}
	return max(0, failed-last.own)
}
