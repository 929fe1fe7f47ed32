// Package overload holds the overload detection policies: may this upstream
// take this job? Each upstream has a Detector of its own, which turns what
// the upstream reports into a Level. Detectors own no clock and no lock.
package overload

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/pkg/selection"
)

// Sample is what one report says about an upstream's load.
type Sample struct {
	// Stalled is the number of joblets ready and waiting for a core.
	Stalled float64
	// Wait is the mean wait of recently started jobs, in seconds; NaN when
	// the upstream does not report it.
	Wait float64
}

// Detector follows one upstream's load. It remembers earlier samples, so it
// must see every report once and in order.
type Detector interface {
	// Observe takes a new report into account and returns the new level.
	Observe(Sample) Level
}

// The policy and the limit of who names none. The limit is the thesis's.
const (
	DefaultPolicy = "none"
	DefaultLimit  = 100
)

// Names lists every policy that New knows.
func Names() []string {
	return []string{DefaultPolicy, "threshold", "dagor"}
}

// New returns what makes a detector for one upstream, by the policy's name,
// with its default parameters. limit is the number of stalled joblets above
// which an upstream is overloaded; none does not use it. The
// error lists the known policies, or names the limit that makes no sense.
func New(name string, limit float64) (func() Detector, error) {
	switch {
	case name == DefaultPolicy:
		return func() Detector { return None{} }, nil
	case !slices.Contains(Names(), name):
		return nil, fmt.Errorf("unknown overload policy %q: want one of %s", name, strings.Join(Names(), ", "))
	case !(limit > 0) || math.IsInf(limit, 0):
		return nil, fmt.Errorf("%s: the limit is %v stalled joblets: want a finite number above 0", name, limit)
	case name == "dagor":
		return func() Detector { return NewDagor(limit, false) }, nil
	}
	return func() Detector { return &Threshold{limit: limit} }, nil
}

// Level says which jobs an upstream may take: 1 is all, 0 is none. In
// between, it takes the jobs whose Rank is below the level.
type Level float64

// Admits reports whether the job may go to an upstream at this level.
func (l Level) Admits(job selection.Job) bool {
	return l >= 1 || Rank(job) < float64(l)
}

// Rank orders jobs by importance over [0, 1). The job with the lowest rank is
// refused last. All high jobs come before all low ones. Within a priority the
// project's hash and the hour decide, so that every sidecar refuses the same
// projects, and the admitted ones keep their caches (DAGOR's business and user
// priority).
func Rank(job selection.Job) float64 {
	rank := float64(hash.Pair(job.Project, job.Hour)>>11) / (1 << 53) / selection.Priorities
	if job.Priority == selection.Low {
		rank += 1.0 / selection.Priorities
	}
	return rank
}

// None finds no upstream overloaded, whatever it reports.
//
// Source: the thesis's baseline, 9.1.1. Use it where the selection policy alone
// keeps jobs off crowded upstreams, as Expected does.
type None struct{}

// Observe implements Detector.
func (None) Observe(Sample) Level { return 1 }

// hysteresis is the share of the limit below which the stalled joblets must
// fall before a tripped breaker resets. Without it, a backlog around the limit
// would switch the breaker with every report.
const hysteresis = 0.8

// Threshold is a static breaker: an upstream with more stalled joblets than
// the limit gets no jobs until they are fewer than 0.8 times the limit.
//
// Source: the thesis, 9.1.2. Its limit is 100, and it has no hysteresis. Use it
// as the safety net under any selection policy.
type Threshold struct {
	limit   float64
	tripped bool
}

// Observe implements Detector. A number of stalled joblets that is NaN changes nothing.
func (t *Threshold) Observe(s Sample) Level {
	if t.tripped {
		t.tripped = !(s.Stalled < hysteresis*t.limit)
	} else {
		t.tripped = s.Stalled > t.limit
	}
	if t.tripped {
		return 0
	}
	return 1
}
