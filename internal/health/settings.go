package health

import (
	"math/rand/v2"
	"time"

	"example.org/pilotfish/internal/settings"
)

// Settings are the settings of all breakers.
type Settings struct {
	// Failures is how many failures in a row open a breaker. A success starts
	// the count again; time alone does not. A connection that takes too long opens it at
	// once, unless the upstream has answered or reported meanwhile.
	Failures int `yaml:"failures"`
	// Open is how long a breaker stays open the first time. The time doubles
	// each time the upstream fails again before it has worked for twelve times
	// Open, which bounds the doubling. A job that finds no other upstream is let through
	// after Open all the same.
	Open time.Duration `yaml:"open"`
}

// Default returns the settings of an empty file.
func Default() Settings { return Settings{Failures: 5, Open: 5 * time.Second} }

// MinOpen is the shortest open time of a breaker.
const MinOpen = time.Millisecond

const (
	maxFailures = 1_000_000
	maxOpen     = 24 * time.Hour
)

// Check adds invalid values to f.
func (s Settings) Check(f *settings.Faults) {
	f.Within("failures", s.Failures, 1, maxFailures)
	if s.Open < MinOpen || s.Open > maxOpen {
		f.Add("open", "%v is not between %v and %v", s.Open, MinOpen, maxOpen)
	}
}

// OpenMax is the longest open time. A breaker that has been closed for as long starts with the first open time again.
func (s Settings) OpenMax() time.Duration { return 12 * s.Open }

// doublings of the first open time exceed OpenMax.
const doublings = 4

// Config is what the breakers of a pool share. All fields are required.
type Config struct {
	Settings
	// Gate makes the gate of one breaker. At each failure the gate calls trips, which returns whether this many
	// failures in a row open it.
	Gate func(trips func(inARow int) bool) Gate
	// Rand draws the jitter of open times.
	Rand *rand.Rand
}

// Gate is the circuit breaker of a library. It counts failures in a row, opens, and lets one job through when it is half
// open. It lets a job through, or refuses it with an error. done takes the result of a job, nil for a success. It serves
// all jobs until the gate opens or closes; while the gate is half open, the first result counts.
type Gate = func() (done func(error), err error)
