package health

import (
	"math/rand/v2"
	"time"

	"example.org/pilotfish/internal/settings"
)

// Settings are the settings of all breakers.
type Settings struct {
	// Failures is the number of failures in a row that open a breaker. A success resets the count; time does not. The
	// start of a response is a success, but after a truncated response only the end of a complete one is. One refused connection
	// or connect timeout opens it, unless the upstream has responded or reported since the job was sent.
	Failures int `yaml:"failures"`
	// Open is how long a breaker stays open the first time. The time doubles each time it opens again, up to twelve
	// times this value, and varies at random by up to a fifth, up or down. Once the breaker has been closed for twelve times this value, it starts from this value again.
	// A job that no other upstream can take is sent after the first, undoubled time.
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

// OpenMax is the longest open time. After being closed for OpenMax, a breaker starts with the first open time again.
func (s Settings) OpenMax() time.Duration { return 12 * s.Open }

// doublings is the number of doublings after which an open time is OpenMax: 2 to the power of 4 exceeds 12.
const doublings = 4

// Config is the configuration that the breakers of a pool share. All fields are required.
type Config struct {
	Settings
	// Gate makes the library's breaker for one upstream. While closed, it calls trips at each failure; trips reports
	// whether this many failures in a row open it.
	Gate func(trips func(inARow int) bool) Gate
	// Rand is the random source for the jitter of open times.
	Rand *rand.Rand
}

// Gate is a library's circuit breaker. It lets a job through, or refuses it with an error. done takes the result of a
// job, nil for a success. It can be called for any number of jobs until the gate opens or closes. A half-open gate lets
// one job through, and only the first result counts.
type Gate = func() (done func(error), err error)
