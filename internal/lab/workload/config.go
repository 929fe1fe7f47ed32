// Package workload invents the jobs of a product feed processing system: a
// population of projects whose sizes, schedules, channels and popularity are
// long-tailed (the thesis, 4.1.2), and the jobs that they and the people who
// look after them submit.
//
// Everything follows from one seed: equal configurations give equal jobs, on
// one architecture to the last bit.
// Memory grows with the population, never with the number of jobs emitted.
package workload

import (
	"fmt"
	"math"

	"example.org/pilotfish/pkg/trace"
)

// Pattern is how jobs arrive.
type Pattern string

const (
	// Schedules is the pattern of the thesis: a project's schedule fires all
	// its channels within seconds to minutes, and people work in sessions.
	Schedules Pattern = "schedules"
	// Steady sends single jobs at a constant rate, independent of each other.
	Steady Pattern = "steady"
	// SingleBurst sends all jobs one Gap apart and then nothing (Turner, 4.2).
	SingleBurst Pattern = "single-burst"
	// OnOff sends BurstJobs jobs at once, pauses, and does so again (Turner, 4.4).
	OnOff Pattern = "on-off"
)

// Config describes a workload. The zero value of each field means its
// default; the zero Config is the thesis's day in production.
type Config struct {
	// Seed selects one of the many workloads that fit the description.
	Seed uint64 `yaml:"seed"`
	// Pattern defaults to Schedules.
	Pattern Pattern `yaml:"pattern"`
	// Jobs is the exact number of jobs; the default is the thesis's 2,879,676.
	Jobs int `yaml:"jobs"`
	// Duration is the time from 0 in which all jobs are sent, in seconds; a day by default.
	Duration float64 `yaml:"duration"`
	// StartHour is the hour of the day at time zero, 0 to 23.
	StartHour int `yaml:"start_hour"`
	// Submitters is how many submitters there are; each job comes from one at
	// random. Default 40.
	Submitters int `yaml:"submitters"`
	// HighShare is the share of high jobs, prefetches included. Default 0.2,
	// an assumption: the thesis gives no share, only that most jobs are low.
	// A share too small for one job gives none.
	HighShare float64 `yaml:"high_share"`
	// Static leaves the data of every project as it is, as in the thesis's
	// experiments (7.4.1). Otherwise imports change it.
	Static bool `yaml:"static"`

	// Projects is the size of the population. For Schedules it is 0: there are
	// as many as it takes to make the jobs. Otherwise the default is 1000.
	Projects int `yaml:"projects"`
	// Gap is between the jobs of a SingleBurst, in seconds. Default 1.
	Gap float64 `yaml:"gap"`
	// BurstJobs are sent at once by OnOff. Default 20.
	BurstJobs int `yaml:"burst_jobs"`
	// Pause is between the bursts of OnOff, in seconds. Default 30.
	Pause float64 `yaml:"pause"`

	// Population, Schedule and Session shape what is drawn.
	Population PopulationConfig `yaml:"population"`
	Schedule   ScheduleConfig   `yaml:"schedule"`
	Session    SessionConfig    `yaml:"session"`

	// LowTimeouts and HighTimeouts are set on every job of that priority.
	// Defaults: 240, 1800 and 3600 s, and 60, 600 and 600 s.
	LowTimeouts  trace.Timeouts `yaml:"low_timeouts"`
	HighTimeouts trace.Timeouts `yaml:"high_timeouts"`
}

// The thesis's day: the jobs left of the capture (the thesis, 8.1.1).
const (
	thesisJobs = 2_879_676
	day        = 86400.0
	hour       = 3600.0
)

// Resolve returns c with every default in place, or what makes no sense in it:
// "workload: ", the field as a file names it, and the fault.
func (c Config) Resolve() (Config, error) {
	c = c.withDefaults()
	return c, c.validate()
}

// withDefaults returns c with every zero field at its default.
func (c Config) withDefaults() Config {
	orDefault(&c.Pattern, Schedules)
	orDefault(&c.Jobs, thesisJobs)
	orDefault(&c.Duration, day)
	orDefault(&c.Submitters, 40)
	orDefault(&c.HighShare, 0.2)
	if c.Pattern != Schedules {
		orDefault(&c.Projects, 1000)
	}
	orDefault(&c.Gap, 1)
	orDefault(&c.BurstJobs, 20)
	orDefault(&c.Pause, 30)
	orDefault(&c.LowTimeouts, trace.Timeouts{Queue: 240, Evaluate: 1800, Stream: 3600})
	orDefault(&c.HighTimeouts, trace.Timeouts{Queue: 60, Evaluate: 600, Stream: 600})
	c.Population = c.Population.withDefaults()
	c.Schedule = c.Schedule.withDefaults()
	c.Session = c.Session.withDefaults()
	return c
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate refuses nonsense; it expects the defaults to be in place.
func (c *Config) validate() error {
	switch c.Pattern {
	case Schedules:
		if c.Projects != 0 {
			return fmt.Errorf("workload: projects: %d given, but pattern %s makes as many as its jobs need", c.Projects, c.Pattern)
		}
	case Steady, SingleBurst, OnOff:
		if c.Projects < 1 || c.Projects > c.Population.MaxProjects {
			return fmt.Errorf("workload: projects: %d is not between 1 and %d", c.Projects, c.Population.MaxProjects)
		}
	default:
		return fmt.Errorf("workload: pattern: unknown %q: it is %s, %s, %s or %s", c.Pattern, Schedules, Steady, SingleBurst, OnOff)
	}
	if c.Jobs < 1 {
		return fmt.Errorf("workload: jobs: %d is less than 1", c.Jobs)
	}
	if c.Submitters < 1 {
		return fmt.Errorf("workload: submitters: %d is less than 1", c.Submitters)
	}
	if c.StartHour < 0 || c.StartHour > 23 {
		return fmt.Errorf("workload: start_hour: %d is not between 0 and 23", c.StartHour)
	}
	if c.BurstJobs < 1 {
		return fmt.Errorf("workload: burst_jobs: %d is less than 1", c.BurstJobs)
	}
	if err := inRange("high_share", c.HighShare, 0, 1); err != nil {
		return err
	}
	for _, s := range [...]struct {
		field string
		value float64
	}{
		{"duration", c.Duration}, {"gap", c.Gap}, {"pause", c.Pause},
		{"low_timeouts.queue", c.LowTimeouts.Queue}, {"low_timeouts.evaluate", c.LowTimeouts.Evaluate}, {"low_timeouts.stream", c.LowTimeouts.Stream},
		{"high_timeouts.queue", c.HighTimeouts.Queue}, {"high_timeouts.evaluate", c.HighTimeouts.Evaluate}, {"high_timeouts.stream", c.HighTimeouts.Stream},
	} {
		if err := inRange(s.field, s.value, 0, trace.MaxSeconds); err != nil {
			return err
		}
	}
	if need := c.span(); need > c.Duration {
		return fmt.Errorf("workload: duration: %v s is too short: the %d jobs of pattern %s take %v s", c.Duration, c.Jobs, c.Pattern, need)
	}
	if err := c.Population.validate(); err != nil {
		return err
	}
	if err := c.Schedule.validate(); err != nil {
		return err
	}
	return c.Session.validate()
}

// span is the time from the first to the last job of the patterns that fix it.
func (c *Config) span() float64 {
	switch c.Pattern {
	case SingleBurst:
		return float64(c.Jobs-1) * c.Gap
	case OnOff:
		return float64((c.Jobs-1)/c.BurstJobs) * c.Pause
	}
	return 0
}

// inRange refuses a value that is not between low and high; NaN is not.
func inRange(field string, value, low, high float64) error {
	if math.IsNaN(value) || value < low || value > high {
		return fmt.Errorf("workload: %s: %v is not between %v and %v", field, value, low, high)
	}
	return nil
}
