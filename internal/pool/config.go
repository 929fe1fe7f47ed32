package pool

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

// Settings is the part of a Config that can change while jobs run. Policy, Detector, Interval and Breaker are required.
type Settings struct {
	// Policy picks among the eligible upstreams.
	Policy selection.Policy
	// Shadow is a second policy, whose choices are recorded but not used; nil means none.
	Shadow *Shadow
	// Detector makes the overload detector of one upstream.
	Detector func() overload.Detector
	// Interval is the mean time between two reports of one upstream. A reported load is used for three intervals, a
	// cache listing for twelve.
	Interval time.Duration
	// Probe is set if upstreams are probed before a job is claimed (Pool.Probes).
	Probe bool
	// Withdraw is set if upstreams withdraw waiting jobs on request (Pool.Withdrawals).
	Withdraw bool
	// Breaker sets when breakers open, and for how long.
	Breaker health.Settings
	// Heavy sets which jobs are heavy.
	Heavy HeavySettings
}

// Shadow is a policy on trial. It has its own random source, so that it does not affect the choices of the policy in use.
type Shadow struct {
	Policy selection.Policy
	Rand   *rand.Rand
}

// Config configures a pool. Settings, Gate and Rand are required.
type Config struct {
	Settings
	// Gate makes the gate of one breaker, as health.Config.Gate does.
	Gate func(trips func(inARow int) bool) health.Gate
	// Rand breaks ties and draws samples.
	Rand *rand.Rand
	// RefusalPause is how long an upstream that refused a job because of its load gets no other job, if another
	// upstream is eligible. Without this pause, an upstream that refuses at once looks idle and attracts all jobs. 0
	// means 1 s; negative means no pause.
	RefusalPause time.Duration
}

func (c *Config) validate() error {
	if c.Policy == nil || c.Detector == nil || c.Gate == nil || c.Rand == nil {
		return errors.New("pool: Policy, Detector, Gate and Rand are required")
	}
	if c.RefusalPause == 0 {
		c.RefusalPause = time.Second
	}
	if c.Interval <= 0 {
		return fmt.Errorf("pool: Interval %v must be positive", c.Interval)
	}
	var f settings.Faults
	c.Breaker.Check(f.In("breaker"))
	return f.Err()
}

// HeavySettings sets which jobs are heavy and go to dedicated upstreams (the thesis, 8.2.3).
type HeavySettings struct {
	// Projects are the projects whose jobs are heavy.
	Projects []string `yaml:"projects,omitempty"`
	// Bytes is the minimum size of a project's data for its jobs to be heavy, if the size is known. With 0, size makes
	// no job heavy.
	Bytes settings.Size `yaml:"bytes"`
	// Expected is the minimum expected duration of a heavy job on a core, without fetches. With 0, duration makes no
	// job heavy.
	Expected time.Duration `yaml:"expected"`
}

// maxHeavyProjects is the maximum length of Projects.
const maxHeavyProjects = 10_000

// Check adds invalid values to f.
func (s HeavySettings) Check(f *settings.Faults) {
	f.Within("projects", len(s.Projects), 0, maxHeavyProjects)
	for i, project := range s.Projects {
		if project == "" || len(project) > intake.MaxProject {
			f.Add(fmt.Sprintf("projects[%d]", i), "%s is not a project: want 1 to %d bytes", settings.Quote(project), intake.MaxProject)
		}
	}
	f.AtLeast("bytes", int64(s.Bytes), 0)
	f.NotNegative("expected", s.Expected)
}

// keys returns the hashes of the projects.
func (s HeavySettings) keys() map[uint64]bool {
	keys := make(map[uint64]bool, len(s.Projects))
	for _, project := range s.Projects {
		keys[intake.Key(project)] = true
	}
	return keys
}
