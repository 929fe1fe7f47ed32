package workload

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/pkg/trace"
)

func TestConfigRefusesNonsense(t *testing.T) {
	for want, change := range map[string]func(*Config){
		`workload: pattern: unknown "poisson": it is schedules, steady, single-burst, on-off, sources or prompts`: func(c *Config) { c.Pattern = "poisson" },
		"workload: projects: 5 given, but pattern schedules makes as many as its jobs need":                       func(c *Config) { c.Projects = 5 },
		"workload: projects: -5 is not between 1 and 1000000":                                                     func(c *Config) { c.Pattern, c.Projects = steady, -5 },
		"workload: jobs: -1 is less than 1":                                                                       func(c *Config) { c.Jobs = -1 },
		"workload: submitters: -1 is less than 1":                                                                 func(c *Config) { c.Submitters = -1 },
		"workload: start_hour: 24 is not between 0 and 23":                                                        func(c *Config) { c.StartHour = 24 },
		"workload: burst_jobs: -2 is less than 1":                                                                 func(c *Config) { c.BurstJobs = -2 },
		"workload: high_share: 1.5 is not between 0 and 1":                                                        func(c *Config) { c.HighShare = 1.5 },
		"workload: high_share: NaN is not between 0 and 1":                                                        func(c *Config) { c.HighShare = math.NaN() },
		"workload: duration: -1 is not between 0 and 1e+09":                                                       func(c *Config) { c.Duration = -1 },
		"workload: duration: 60 s is too short: the 100 jobs of pattern single-burst take 99 s":                   func(c *Config) { c.Pattern, c.Jobs, c.Duration = singleBurst, 100, 60 },
		"workload: duration: 60 s is too short: the 100 jobs of pattern on-off take 120 s":                        func(c *Config) { c.Pattern, c.Jobs, c.Duration = onOff, 100, 60 },
		"workload: high_timeouts.stream: -1 is not between 0 and 1e+09":                                           func(c *Config) { c.HighTimeouts = trace.Timeouts{Stream: -1} },
		"workload: population.max_demand: -1 is not between 1e-06 and 1e+12":                                      func(c *Config) { c.Population.MaxDemand = -1 },
		"workload: population.channels_by_size: 2 is not between -1 and 1":                                        func(c *Config) { c.Population.ChannelsBySize = 2 },
		"workload: schedule.imports: 2 is not between 0 and 1":                                                    func(c *Config) { c.Schedule.Imports = 2 },
		"workload: schedule.hours[3]: -1 is not between 0 and 3.4028234663852886e+38":                             func(c *Config) { c.Schedule.Hours[3] = -1 },
		"workload: session.chained: 1.1 is not between 0 and 1":                                                   func(c *Config) { c.Session.Chained = 1.1 },
		"workload: population.work_tail: 0.1 is not between 0.5 and 10":                                           func(c *Config) { c.Population.WorkTail = 0.1 },
		"workload: population.popularity_by_size: 2 is not between -1 and 1":                                      func(c *Config) { c.Population.PopularityBySize = 2 },
		"workload: sources.zipf: -1 is not between 0 and 3":                                                       func(c *Config) { c.Sources.Zipf = -1 },
		"workload: prompts.write: 0 is not between 1 and 1e+09":                                                   func(c *Config) { c.Prompts.Write = 0 },
		"workload: crowds[0].for: 50 s from 60 s on is longer than the workload, 100 s":                           func(c *Config) { c.Duration, c.Crowds = 100, []Crowd{{At: 60, For: 50, Jobs: 1}} },
		"workload: crowds[1].jobs: 0 is not between 1 and 1000000000":                                             func(c *Config) { c.Crowds = []Crowd{{Jobs: 1}, {}} },
		"workload: session.max_jobs: -1 is not between 1 and 1e+06":                                               func(c *Config) { c.Session.MaxJobs = -1 },
	} {
		cfg := config(func(c *Config) { c.Jobs = 10 })
		change(&cfg)
		_, err := New(cfg)
		assert.EqualError(t, err, want)
	}
}
