package workload

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestConfigRefusesNonsense(t *testing.T) {
	for want, change := range map[string]func(*Config){
		`workload: pattern: unknown "poisson": it is schedules, steady, sources or bursts`:  func(c *Config) { c.Pattern = "poisson" },
		"workload: projects: 5 given, but pattern schedules makes as many as its jobs need": func(c *Config) { c.Projects = 5 },
		"workload: projects: -5 is not between 1 and 1000000":                               func(c *Config) { c.Pattern, c.Projects = steady, -5 },
		"workload: jobs: -1 must be at least 1":                                             func(c *Config) { c.Jobs = -1 },
		"workload: submitters: -1 must be at least 1":                                       func(c *Config) { c.Submitters = -1 },
		"workload: start_hour: 24 is not between 0 and 23":                                  func(c *Config) { c.StartHour = 24 },
		"workload: high_share: 1.5 is not between 0 and 1":                                  func(c *Config) { c.HighShare = 1.5 },
		"workload: high_share: NaN is not between 0 and 1":                                  func(c *Config) { c.HighShare = math.NaN() },
		"workload: duration: -1 is not between 0 and 1e+09":                                 func(c *Config) { c.Duration = -1 },
		"workload: bursts.size: only the pattern bursts has bursts":                         func(c *Config) { c.Bursts.Size = 1 },
		"workload: bursts.size: 0 is not between 1 and 10":                                  func(c *Config) { c.Pattern = bursts },
		"workload: bursts.every: a burst of 5 jobs with gaps of 1 s has not ended after 3 s": func(c *Config) {
			c.Pattern, c.Bursts = bursts, Bursts{Size: 5, Every: 3, Gap: 1}
		},
		"workload: bursts.size: the last of 10 jobs is sent after 90000 s, and the duration is 86400": func(c *Config) {
			c.Pattern, c.Bursts = bursts, Bursts{Size: 10, Gap: 10_000}
		},
		"workload: hot.every: 0 must be positive":       func(c *Config) { c.Hot.Projects = 1 },
		"workload: hot.share: 2 is not between 0 and 1": func(c *Config) { c.Hot.Share = 2 },
	} {
		cfg := config(func(c *Config) { c.Jobs = 10 })
		change(&cfg)
		_, err := New(cfg)
		assert.EqualError(t, err, want)
	}
}
