package health

import (
	"math/rand/v2"
	"time"

	"example.org/pilotfish/internal/settings"
)

// Settings are the settings of all breakers.
type Settings struct {
	// Failures is the number of failures in a row that open a breaker. A success resets the count; time does not. One
	// refused connection or connect timeout opens it, unless the upstream has responded or reported since the job was sent.
	Failures int `yaml:"failures"`
	// Open is how long a breaker stays open the first time. The time doubles each time it opens again, up to twelve times this
	// value, until the upstream has worked for as long. A job that finds no other upstream is sent after the first
	// open time already.
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

// OpenMax is the longest open time. A breaker that was closed for as long starts with the first open time again.
func (s Settings) OpenMax() time.Duration { return 12 * s.Open }

// doublings is the number of doublings that exceed OpenMax.
const doublings = 4

// Config is what the breakers of a pool share. All fields are required.
type Config struct {
	Settings
	// Gate makes the gate of one breaker. The gate calls trips at each failure while it is closed; trips returns whether
	// this many failures in a row open it.
	Gate func(trips func(inARow int) bool) Gate
	// Rand draws the jitter of open times.
	Rand *rand.Rand
}

// Gate is a library's circuit breaker. It lets a job through, or refuses it with an error. done takes the result of a job,
// nil for a success, and serves all jobs until the gate opens or closes. A half-open gate lets one job through, and the
// first result counts.
type Gate = func() (done func(error), err error)
