// Package workload generates the jobs of a product feed processing system. It draws
// a population of projects whose sizes, schedules, channels and popularity are
// long-tailed (the thesis, 4.1.2), and the jobs that the projects and the people
// who work on them submit.
//
// One seed decides everything: equal configurations give equal jobs, to the last
// bit on one architecture. Memory grows with the population, not with the number
// of jobs, except with the pattern sources.
package workload

import (
	"cmp"

	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/lab/trace"
)

// Pattern is how jobs arrive.
type Pattern string

const (
	// schedules is the pattern of the thesis: a project's schedule fires all
	// its channels within seconds to minutes, and people work in sessions.
	schedules Pattern = "schedules"
	// steady sends single jobs at a constant rate, independent of each other.
	steady Pattern = "steady"
	// sources is a second model of the same cluster, which shares nothing with
	// schedules but how long a fetch takes.
	sources Pattern = "sources"
	// bursts sends single jobs in the bursts that Config.Bursts describes.
	bursts Pattern = "bursts"
)

// Config describes a workload. Start from Default. Times are in seconds.
type Config struct {
	// Seed selects one of the many workloads that fit the description.
	Seed uint64 `yaml:"-"`
	// Pattern is how jobs arrive.
	Pattern Pattern `yaml:"pattern"`
	// Jobs is the exact number of jobs, Crowd's not included.
	Jobs int `yaml:"jobs"`
	// Duration is the time from 0 in which all jobs are sent.
	Duration float64 `yaml:"duration"`
	// StartHour is the hour of the day at time zero, 0 to 23.
	StartHour int `yaml:"start_hour"`
	// Submitters is the number of submitters. Each job comes from one of
	// them at random.
	Submitters int `yaml:"submitters"`
	// HighShare is the share of high jobs, prefetches included.
	HighShare float64 `yaml:"high_share"`
	// Static leaves the data of every project as it is, as in the thesis's
	// experiments (7.4.1). Otherwise imports change it.
	Static bool `yaml:"static"`

	// Bursts sets the sizes and intervals of the pattern bursts.
	Bursts Bursts `yaml:"bursts"`
	// Hot makes a few projects popular, with the patterns steady and bursts.
	Hot Hot `yaml:"hot"`
	// Projects is the size of the population. 0 leaves it to the pattern:
	// schedules draws as many projects as make the jobs, the others draw 1,000.
	Projects int `yaml:"projects"`
	// Needs is the data that jobs need besides their project's.
	Needs Needs `yaml:"needs"`
	// Crowd is added to the pattern's jobs.
	Crowd Crowd `yaml:"-"`

	// MaxWork bounds the work of a low job, and MaxView the work of a person's job, in
	// core-seconds. MaxBytes bounds a project's data. The calibration assumes the defaults.
	MaxWork, MaxView, MaxBytes float64 `yaml:"-"`
}

const (
	day  = 86400.0
	hour = 3600.0
)

// Default returns the workload of the thesis's day in production.
func Default() Config {
	return Config{
		Pattern:    schedules,
		Jobs:       2_879_676, // the captured jobs that could be replayed (the thesis, 8.1.1)
		Duration:   day,
		Submitters: 40,
		// An assumption: the thesis says only that most jobs are low.
		HighShare: 0.2,
		MaxWork:   1800,
		MaxView:   430,
		MaxBytes:  8e9,
	}
}

// Check adds invalid values to f.
func (c Config) Check(f *settings.Faults) {
	switch c.Pattern {
	case schedules:
		if c.Projects != 0 {
			f.Add("projects", "%d given, but pattern %s makes as many as its jobs need", c.Projects, c.Pattern)
		}
	case steady, sources, bursts:
		f.Within("projects", c.projects(), 1, maxProjects)
	default:
		f.Add("pattern", "unknown %q: it is %s, %s, %s or %s", c.Pattern, schedules, steady, sources, bursts)
	}
	c.Bursts.check(f.In("bursts"), c)
	c.Hot.check(f.In("hot"))
	f.AtLeast("jobs", int64(c.Jobs), 1)
	f.AtLeast("submitters", int64(c.Submitters), 1)
	f.Within("start_hour", c.StartHour, 0, 23)
	f.Between("high_share", c.HighShare, 0, 1)
	c.Needs.check(f.In("needs"))
	f.Between("duration", c.Duration, 0, trace.MaxSeconds)
}

// Len returns the number of jobs, the crowd's included.
func (c *Config) Len() int { return c.Jobs + c.Crowd.Jobs }

// projects returns the size of the population for all patterns except schedules.
func (c *Config) projects() int { return cmp.Or(c.Projects, 1000) }
