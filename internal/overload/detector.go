// Package overload holds the overload detection policies: can an upstream take
// another job? Each upstream has its own Detector, which turns the upstream's
// reports into a Level. Detectors have no clock and no lock.
package overload

import (
	"math"
	"time"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/internal/settings"
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

// Settings is the section "overload" of a configuration file.
type Settings struct {
	// Policy names the overload detection policy: none, threshold or dagor.
	Policy string `yaml:"policy"`
	// Stalled is the number of stalled joblets above which an upstream is overloaded.
	// The policy none ignores it.
	Stalled float64 `yaml:"stalled"`
	// Reset is the share of "stalled" below which the policy threshold ends an overload. Without
	// this hysteresis (1, as in the thesis), a backlog near the limit switches with every report.
	Reset float64 `yaml:"reset"`
	// Wait is the mean queue time above which the policy dagor finds an upstream overloaded, where upstreams
	// report it. 0 uses stalled joblets only, as the thesis does.
	Wait time.Duration `yaml:"wait"`
}

// Default is the settings of an empty file. The limit of 100 stalled joblets is the thesis's. DAGOR's
// paper takes 20 ms for services that respond within 500 ms: 4 %. 10 s is 4 % of the thesis's 240 s.
func Default() Settings {
	return Settings{Policy: "none", Stalled: 100, Reset: 0.8, Wait: 10 * time.Second}
}

// Names lists every overload detection policy.
func Names() []string { return []string{"none", "threshold", "dagor"} }

// Check adds what cannot be used to f.
func (s Settings) Check(f *settings.Faults) {
	f.OneOf("policy", s.Policy, Names())
	if !(s.Stalled > 0) || math.IsInf(s.Stalled, 0) { // in this form it refuses NaN too
		f.Add("stalled", "%v must be a finite number above 0", s.Stalled)
	}
	if !(s.Reset > 0 && s.Reset <= 1) {
		f.Add("reset", "%v is not above 0 and at most 1", s.Reset)
	}
	f.NotNegative("wait", s.Wait)
}

// Detector returns the function that makes a detector for one upstream. The error
// lists all faults of the settings.
func (s Settings) Detector() (func() Detector, error) {
	var f settings.Faults
	s.Check(f.In("overload"))
	switch s.Policy {
	case "threshold":
		return func() Detector { return threshold(s) }, f.Err()
	case "dagor":
		return func() Detector { return dagor(s) }, f.Err()
	}
	return func() Detector { return none }, f.Err()
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

// none never finds an upstream overloaded.
//
// Source: the thesis's baseline, 9.1.1. Use it where the selection policy alone
// keeps jobs off crowded upstreams, as Expected does.
func none(Sample) Level { return 1 }

// threshold is a static circuit breaker: an upstream with more stalled joblets than
// the limit gets no jobs until they are fewer than reset times the limit, or, without hysteresis, at
// most the limit. A number of stalled joblets that is NaN changes nothing.
//
// Source: the thesis, 9.1.2, which has a limit of 100 and no hysteresis. Use it
// as the safety net under any selection policy.
func threshold(s Settings) Detector {
	tripped := false
	return func(sample Sample) Level {
		switch {
		case sample.Stalled > s.Stalled:
			tripped = true
		case sample.Stalled < s.Reset*s.Stalled, s.Reset == 1 && sample.Stalled <= s.Stalled:
			tripped = false
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
)

// dagor moves the level at which an upstream admits jobs by Rank. With every
// report the level falls to 0.95 times itself while the upstream is overloaded,
// and rises by 0.01 while it is not, between 0.02 and 1. So low jobs are refused
// before high ones, and by project, so that the admitted projects keep their
// caches. An upstream is overloaded when it reports a longer mean wait than the limit; where that
// is not reported or has no limit, when more joblets are stalled than the limit.
//
// Source: Zhou et al. (2018) as the thesis uses it, 9.1.3. The paper moves
// its level along a histogram of the arrivals; here Rank spreads each priority
// evenly, and the level itself is scaled. Use it where an overloaded pool
// must shed low jobs. It reacts within a minute, not within a report.
func dagor(s Settings) Detector {
	level := 1.0
	return func(sample Sample) Level {
		overloaded := sample.Wait > s.Wait.Seconds()
		if math.IsNaN(sample.Wait) || s.Wait == 0 {
			overloaded = sample.Stalled > s.Stalled
		}
		if overloaded {
			level = max(dagorFloor, level*dagorDown)
		} else {
			level = min(1, level+dagorUp)
		}
		return Level(level)
	}
}
