// Package overload holds the overload detection policies, which decide whether an
// upstream can accept another job. Each upstream has its own Detector, which turns
// the upstream's reports into a Level. Detectors use no clock and no lock.
package overload

import (
	"math"
	"time"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

// Sample is an upstream's load according to one report.
type Sample struct {
	// Stalled is the number of joblets (tasks of jobs) that are ready and wait for a core.
	Stalled float64
	// Wait is the mean queue time of recently started jobs, in seconds; NaN if the
	// upstream does not report it.
	Wait float64
}

// Detector updates the level of one upstream with a new sample and returns it. A detector has
// state, so it must be called once for each report, in order.
type Detector func(Sample) Level

// Settings is the section "overload" of a configuration file.
type Settings struct {
	// Policy names the overload detection policy: none, threshold or dagor.
	Policy string `yaml:"policy"`
	// Stalled is the number of stalled joblets above which an upstream is overloaded.
	// The policy none ignores it.
	Stalled float64 `yaml:"stalled"`
	// Reset is the fraction of "stalled" below which the policy threshold ends an overload. 1 means no
	// hysteresis, as in the thesis; the state then flaps when the backlog is near the limit.
	Reset float64 `yaml:"reset"`
	// Wait is the mean queue time above which the policy dagor considers an upstream overloaded, for upstreams
	// that report it. With 0, only stalled joblets count, as in the thesis.
	Wait time.Duration `yaml:"wait"`
}

// Default returns the settings of an empty file. The limit of 100 stalled joblets is from the thesis. DAGOR's
// paper uses a queue time of 20 ms for a timeout of 500 ms, or 4 %; 10 s is 4 % of the thesis's 240 s.
func Default() Settings {
	return Settings{Policy: "none", Stalled: 100, Reset: 0.8, Wait: 10 * time.Second}
}

// Names returns the names of all overload detection policies.
func Names() []string { return []string{"none", "threshold", "dagor"} }

// Check adds invalid values to f.
func (s Settings) Check(f *settings.Faults) {
	f.OneOf("policy", s.Policy, Names())
	if !(s.Stalled > 0) || math.IsInf(s.Stalled, 0) { // in this form it also rejects NaN
		f.Add("stalled", "%v must be a finite number above 0", s.Stalled)
	}
	if !(s.Reset > 0 && s.Reset <= 1) {
		f.Add("reset", "%v is not above 0 and at most 1", s.Reset)
	}
	f.NotNegative("wait", s.Wait)
}

// Detector returns a function that creates the detector of one upstream. The error
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

// Level determines which jobs are admitted to an upstream: 1 means all, 0 none. A level
// in between admits the jobs whose Rank is below the level.
type Level float64

// Admits reports whether an upstream at this level accepts the job.
func (l Level) Admits(job selection.Job) bool {
	return l >= 1 || Rank(job) < float64(l)
}

// Rank orders jobs by importance in [0, 1); the lowest rank is refused last. All
// jobs of high priority rank before all jobs of low priority. Within a priority,
// the rank is a hash of the project and the hour. So every sidecar refuses the
// same projects, and the caches keep the data of the admitted projects. (DAGOR:
// business and user priority.)
func Rank(job selection.Job) float64 {
	rank := float64(hash.Pair(job.Project, job.Hour)>>11) / (1 << 53) / selection.Priorities
	if job.Priority == selection.Low {
		rank += 1.0 / selection.Priorities
	}
	return rank
}

// none never considers an upstream overloaded.
//
// Source: the thesis's baseline, 9.1.1. Use it with a selection policy that avoids
// busy upstreams by itself, such as Expected.
func none(Sample) Level { return 1 }

// threshold is a static circuit breaker. It opens when an upstream has more stalled joblets
// than the limit; the upstream then gets no jobs. It closes below reset times the limit, or, if
// reset is 1, at the limit. NaN stalled joblets change nothing.
//
// Source: the thesis, 9.1.2, with a limit of 100 and no hysteresis. Use it as a
// safety net under any selection policy.
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

// How dagor changes the level with each report (5 % and 1 % in the paper).
const (
	dagorDown  = 0.95 // factor while the upstream is overloaded
	dagorUp    = 0.01 // increment while the upstream is not overloaded
	dagorFloor = 0.02 // minimum level: the most important jobs still pass, as probes
)

// dagor adjusts the level gradually. With each report, the level is multiplied by 0.95
// while the upstream is overloaded, and rises by 0.01 while it is not; it stays between
// 0.02 and 1. So jobs of low priority are refused first, and project by project, so
// the caches keep the data of the admitted projects. An upstream is overloaded when its
// mean queue time exceeds the limit. If it does not report the queue time, or the limit
// is 0, it is overloaded when its stalled joblets exceed their limit.
//
// Source: Zhou et al. (2018) as used in the thesis, 9.1.3. The paper moves its level
// along a histogram of arrivals; here Rank spreads each priority evenly, so the level
// itself is scaled. Use it if an overloaded pool must shed jobs of low priority. It
// takes about a minute to react, not a single report.
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
