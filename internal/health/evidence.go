package health

import (
	"errors"
	"fmt"
	"time"
)

// gate wraps the library's breaker. While it is closed, only the first job calls allow, and the done that it returned
// takes the results of all jobs. This saves a call for every other job.
type gate struct {
	allow Gate
	done  func(error) // nil until a job has entered
	force bool        // the next failure opens it, however few failures there were in a row
	opens bool        // the failure just passed to done opened it
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

// Failure is a kind of failure, as messages name it.
type Failure struct {
	One, Many string // its name in the singular and in the plural
	Late      bool   // the response was truncated after it had started
}

// streak counts failures in a row.
type streak struct {
	n     int
	mixed bool // the streak has several kinds of failures
	last  Failure
}

func (r *streak) add(f Failure) {
	r.n, r.mixed, r.last = r.n+1, r.n > 0 && (r.mixed || r.last != f), f
}

// String describes the streak, as the reason why the breaker opened.
func (r *streak) String() string {
	switch {
	case r.n == 1:
		return r.last.One
	case r.mixed:
		return fmt.Sprintf("%d failures in a row, the last: %s", r.n, r.last.One)
	}
	return fmt.Sprintf("%d %s in a row", r.n, r.last.Many)
}

// broken counts the truncated responses since the last complete one.
type broken struct {
	n    int
	last time.Time // when the last response was truncated, or when the breaker closed after that
}

// fleet holds the counters that an upstream reports for the ended jobs of all sidecars. An upstream that fails every job at once
// costs each sidecar a few jobs before its breaker opens; with the reported counters, a few jobs in total suffice.
type fleet struct {
	known         bool
	ended, failed float64 // the counters in the last report
	own           float64 // failures of this sidecar's jobs since that report
	unseen        float64 // failures of this sidecar's jobs that the report should contain and did not: the counters were read before them
	mostFailed    bool    // at least half of the jobs that ended between two reports failed, this sidecar's own failures left out
	inARow        float64 // failed jobs of other sidecars since the last success of any sidecar's job
}

// report records the counters of a report, and returns how many jobs of other sidecars failed since the previous
// report. It returns 0 if that is unknown or the upstream has restarted.
func (f *fleet) report(ended, failed float64) (others float64) {
	if ended < 0 || failed < 0 {
		*f = fleet{mostFailed: f.mostFailed}
		return 0
	}
	last := *f
	*f = fleet{known: true, ended: ended, failed: failed, mostFailed: f.mostFailed, inARow: f.inARow}
	ended, failed = ended-last.ended, failed-last.failed
	switch {
	case !last.known:
		f.unseen = last.own
		return 0
	case ended < 0 || failed < 0:
		return 0
	}
	late := min(last.unseen, failed)
	f.unseen = max(0, late+last.own-failed)
	others = max(0, failed-late-last.own)
	ended -= failed - others // own failures count already
	if ended > 0 {
		f.mostFailed = 2*others >= ended
	}
	if f.inARow += others; others < ended {
		f.inARow = 0
	}
	return others
}
