package workload

import (
	"math"
	"math/rand/v2"
)

// period is the time between two firings and how many projects have it.
type period struct {
	seconds, share float64
}

// periods run from a quarter of an hour to a day (the thesis, 4.1.2); the
// shares are an assumption.
func periods() [6]period {
	return [...]period{{900, 0.08}, {1800, 0.07}, {3600, 0.30}, {4 * hour, 0.20}, {12 * hour, 0.10}, {day, 0.25}}
}

// slower is the next longer period, a day at most.
func slower(p float64) float64 {
	for _, longer := range periods() {
		if longer.seconds > p {
			return longer.seconds
		}
	}
	return day
}

// ScheduleConfig shapes when projects run and how fast their channels follow
// each other. Spreads are standard deviations of logarithms. The zero value of
// each field means its default.
type ScheduleConfig struct {
	// Hours weighs the hours of the day; by default from 64 to 100.
	Hours Hours `yaml:"hours"`
	// Round is the share of projects due on the quarter of an hour: 0.3.
	Round float64 `yaml:"round"`
	// Delay is the median time from the firing to the first job, in which the
	// import runs: 20 s, with a spread of 1.
	Delay       float64 `yaml:"delay"`
	DelaySpread float64 `yaml:"delay_spread"`
	// Pace is the median time from one channel's job to the next: 8 s, with a
	// spread of 1. Worker servers bound it, and MaxWindow, 900 s, bounds the
	// time for all channels.
	Pace       float64 `yaml:"pace"`
	PaceSpread float64 `yaml:"pace_spread"`
	MaxWindow  float64 `yaml:"max_window"`
	// Imports is the chance that a firing imports new data: 0.3. One whose
	// period is a day always does.
	Imports float64 `yaml:"imports"`
	// JobSpread is how much two jobs of one channel differ: 0.3.
	JobSpread float64 `yaml:"job_spread"`
}

func (c ScheduleConfig) withDefaults() ScheduleConfig {
	orDefault(&c.Hours, scheduleHours())
	orDefault(&c.Round, 0.3)
	orDefault(&c.Delay, 20)
	orDefault(&c.DelaySpread, 1)
	orDefault(&c.Pace, 8)
	orDefault(&c.PaceSpread, 1)
	orDefault(&c.MaxWindow, 900)
	orDefault(&c.Imports, 0.3)
	orDefault(&c.JobSpread, 0.3)
	return c
}

func (c *ScheduleConfig) validate() error {
	for _, f := range [...]struct {
		field       string
		value, high float64
	}{
		{"round", c.Round, 1}, {"delay", c.Delay, day}, {"delay_spread", c.DelaySpread, 5},
		{"pace", c.Pace, day}, {"pace_spread", c.PaceSpread, 5}, {"max_window", c.MaxWindow, day},
		{"imports", c.Imports, 1}, {"job_spread", c.JobSpread, 5},
	} {
		if err := inRange("schedule."+f.field, f.value, 0, f.high); err != nil {
			return err
		}
	}
	return c.Hours.validate("schedule.hours")
}

// period draws the period of a project.
func (c *ScheduleConfig) period(rng *rand.Rand) float64 {
	share := rng.Float64()
	for _, p := range periods() {
		if share < p.share {
			return p.seconds
		}
		share -= p.share
	}
	return day
}

// phase draws when a project with a period is due first.
func (c *ScheduleConfig) phase(rng *rand.Rand, period float64) float64 {
	phase := period * rng.Float64()
	if rng.Float64() < c.Round {
		phase -= math.Mod(phase, 900)
	}
	return phase
}

// firings is a project's schedule from now on. It is a value: a copy runs on
// by itself, and gives the same firings.
type firings struct {
	pcg    rand.PCG
	due    float64
	period float64
}

// firing is one run of a schedule.
type firing struct {
	at      float64
	imports bool
}

func newFirings(cfg *Config, number int, p *Project) firings {
	return firings{pcg: *source(cfg.Seed, streamSchedules, number), due: p.Phase, period: p.Period}
}

// next returns the next firing before the end of the workload. A schedule that
// is due in an hour with few firings is passed over as often as that hour's weight tells.
func (f *firings) next(cfg *Config) (run firing, ok bool) {
	rng := rand.New(&f.pcg)
	for f.due < cfg.Duration {
		run = firing{at: f.due}
		f.due += f.period
		fires := rng.Float64() < cfg.Schedule.Hours.at(run.at, cfg.StartHour)
		run.imports = rng.Float64() < cfg.Schedule.Imports || f.period >= day
		if fires {
			return run, true
		}
	}
	return firing{}, false
}

// count is how many firings are left.
func (f firings) count(cfg *Config) int {
	n := 0
	for _, ok := f.next(cfg); ok; _, ok = f.next(cfg) {
		n++
	}
	return n
}
