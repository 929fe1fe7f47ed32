package workload

import (
	"math"
	"math/rand/v2"

	"example.org/pilotfish/internal/settings"
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

// slower is the next longer period, at most a day.
func slower(p float64) float64 {
	for _, longer := range periods() {
		if longer.seconds > p {
			return longer.seconds
		}
	}
	return day
}

// ScheduleConfig shapes when projects run and how fast their channels follow
// each other. Spreads are standard deviations of logarithms, times are in seconds.
type ScheduleConfig struct {
	// Hours weighs the hours of the day.
	Hours Hours `yaml:"hours"`
	// Round is the share of projects that are due on the quarter of an hour.
	Round float64 `yaml:"round"`
	// Delay is the median time from the firing to the first job; the import runs
	// in it.
	Delay       float64 `yaml:"delay"`
	DelaySpread float64 `yaml:"delay_spread"`
	// Pace is the median time from one channel's job to the next: worker servers
	// limit it. MaxWindow bounds the time for all channels.
	Pace       float64 `yaml:"pace"`
	PaceSpread float64 `yaml:"pace_spread"`
	MaxWindow  float64 `yaml:"max_window"`
	// Imports is the chance that a firing imports new data. A firing of a
	// schedule with a period of a day always does.
	Imports float64 `yaml:"imports"`
	// JobSpread is how much two jobs of one channel differ.
	JobSpread float64 `yaml:"job_spread"`
}

func defaultSchedule() ScheduleConfig {
	return ScheduleConfig{
		Hours:       scheduleHours(),
		Round:       0.3,
		Delay:       20,
		DelaySpread: 1,
		Pace:        8,
		PaceSpread:  1,
		MaxWindow:   900,
		Imports:     0.3,
		JobSpread:   0.3,
	}
}

func (c *ScheduleConfig) check(f *settings.Faults) {
	f.Between("round", c.Round, 0, 1)
	f.Between("delay", c.Delay, 0, day)
	f.Between("delay_spread", c.DelaySpread, 0, 5)
	f.Between("pace", c.Pace, 0, day)
	f.Between("pace_spread", c.PaceSpread, 0, 5)
	f.Between("max_window", c.MaxWindow, 0, day)
	f.Between("imports", c.Imports, 0, 1)
	f.Between("job_spread", c.JobSpread, 0, 5)
	c.Hours.check("hours", f)
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

// firings is a project's schedule from now on. It is a value: a copy goes on
// independently, and gives the same firings.
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

func newFirings(cfg *Config, number int, p *projectModel) firings {
	return firings{pcg: *source(cfg.Seed, streamSchedules, number), due: p.Phase, period: p.Period}
}

// next returns the next firing before the end of the workload. In an hour with a
// low weight, a schedule that is due does not always fire.
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
