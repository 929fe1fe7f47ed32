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

// Detector follows one upstream's load: it takes a new report into account and returns the
// new level. It remembers earlier samples, so it must see every report once and in order.
type Detector func(Sample) Level

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
		return func() Detector { return none }, nil
	case !slices.Contains(Names(), name):
		return nil, fmt.Errorf("unknown overload policy %q: want one of %s", name, strings.Join(Names(), ", "))
	case !(limit > 0) || math.IsInf(limit, 0):
		return nil, fmt.Errorf("%s: the limit is %v stalled joblets: want a finite number above 0", name, limit)
	case name == "dagor":
		return func() Detector { return dagor(limit) }, nil
	}
	return func() Detector { return threshold(limit) }, nil
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

// none finds no upstream overloaded, whatever it reports.
//
// Source: the thesis's baseline, 9.1.1. Use it where the selection policy alone
// keeps jobs off crowded upstreams, as Expected does.
func none(Sample) Level { return 1 }

// hysteresis is the share of the limit below which the stalled joblets must
// fall before a tripped breaker resets. Without it, a backlog around the limit
// would switch the breaker with every report.
const hysteresis = 0.8

// threshold is a static breaker: an upstream with more stalled joblets than
// the limit gets no jobs until they are fewer than 0.8 times the limit. A number
// of stalled joblets that is NaN changes nothing.
//
// Source: the thesis, 9.1.2. Its limit is 100, and it has no hysteresis. Use it
// as the safety net under any selection policy.
func threshold(limit float64) Detector {
	tripped := false
	return func(s Sample) Level {
		if tripped {
			tripped = !(s.Stalled < hysteresis*limit)
		} else {
			tripped = s.Stalled > limit
		}
		if tripped {
			return 0
		}
		return 1
	}
}

// How dagor moves the level with each report (the paper's 5 % and 1 %).
const (
	dagorDown  = 0.95 // factor while the upstream is overloaded
	dagorUp    = 0.01 // what is added while it is not
	dagorFloor = 0.02 // lowest level: the most important jobs still pass as probes

	// dagorWait is the mean wait, in seconds, above which an upstream is overloaded that
	// reports it. The paper's limit is 20 ms, for services that answer within 500 ms. This
	// is the same share, 4 %, of the 240 s that jobs wait in a queue at most.
	dagorWait = 10
)

// dagor moves the level at which an upstream admits jobs by Rank. With every
// report the level falls to 0.95 times itself while the upstream is overloaded,
// and rises by 0.01 while it is not, between 0.02 and 1. So low jobs are refused
// before high ones, and by project, so that the admitted projects keep their
// caches. The wait says whether it is overloaded; where that is not reported,
// more stalled joblets than the limit do.
//
// Source: Zhou et al. (2018) as the thesis uses it, 9.1.3. The paper moves
// its level along a histogram of the arrivals; here Rank spreads each priority
// evenly, and the level itself is scaled. Use it where an overloaded pool
// must shed low jobs. It reacts within a minute, not within a report.
func dagor(limit float64) Detector {
	level := 1.0
	return func(s Sample) Level {
		overloaded := s.Wait > dagorWait
		if math.IsNaN(s.Wait) {
			overloaded = s.Stalled > limit
		}
		if overloaded {
			level = max(dagorFloor, level*dagorDown)
		} else {
			level = min(1, level+dagorUp)
		}
		return Level(level)
	}
}
