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

// Settings is the part of a Config that may change while jobs run. All are required but Shadow.
type Settings struct {
	// Policy picks among the eligible upstreams.
	Policy selection.Policy
	// Shadow is asked about each job, too, and not obeyed; nil asks nobody.
	Shadow *Shadow
	// Detector makes the overload detector of an upstream.
	Detector func() overload.Detector
	// Interval is the mean time between two reports of one upstream. The load in
	// a report counts for three intervals, a cache listing for twelve.
	Interval time.Duration
	// Probe has upstreams probed before jobs are claimed (Pool.Probes).
	Probe bool
	// Breaker says when a breaker opens, and for how long.
	Breaker health.Settings
	// Heavy says which jobs are heavy.
	Heavy HeavySettings
}

// Shadow is a policy that somebody would like to try. It draws from a random source of its own,
// so that the other's choices are the same without it.
type Shadow struct {
	Policy selection.Policy
	Rand   *rand.Rand
}

// Config says how a pool chooses. Settings, Gate and Rand are required.
type Config struct {
	Settings
	// Gate makes the breaker of an upstream, as health.Config.Gate.
	Gate func(trips func(inARow int) bool) health.Gate
	// Rand breaks ties and draws samples.
	Rand *rand.Rand
	// Hold is how long an upstream that refused a job for load gets no other
	// while there is another to ask. Without it an upstream that refuses at once
	// would look idle and attract the rest. Default 1 s; negative is not at all.
	Hold time.Duration
}

func (c *Config) validate() error {
	if c.Policy == nil || c.Detector == nil || c.Gate == nil || c.Rand == nil {
		return errors.New("pool: Policy, Detector, Gate and Rand are required")
	}
	if c.Hold == 0 {
		c.Hold = time.Second
	}
	if c.Interval <= 0 {
		return fmt.Errorf("pool: Interval %v must be positive", c.Interval)
	}
	var f settings.Faults
	c.Breaker.Check(f.In("breaker"))
	return f.Err()
}

// HeavySettings says which jobs are heavy: those for dedicated upstreams (the thesis, 8.2.3).
type HeavySettings struct {
	// Projects are those whose jobs are heavy.
	Projects []string `yaml:"projects,omitempty"`
	// Bytes is the size of a project's data from which on its jobs are heavy, where the size is known. 0 is none.
	Bytes settings.Size `yaml:"bytes"`
	// Expected is the time on a core, fetches aside, from which on jobs that are expected to take it are heavy. 0 is none.
	Expected time.Duration `yaml:"expected"`
}

// maxHeavyProjects bounds Projects.
const maxHeavyProjects = 10_000

// Check reports what cannot be used.
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

// keys is the set of the projects' hashes.
func (s HeavySettings) keys() map[uint64]bool {
	keys := make(map[uint64]bool, len(s.Projects))
	for _, project := range s.Projects {
		keys[intake.Key(project)] = true
	}
	return keys
}
