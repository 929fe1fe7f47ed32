package breaker

import (
	"time"

	"example.org/pilotfish/internal/settings"
)

// Settings is the part that an operator sets.
type Settings struct {
	// Failures is how many failures in a row open a breaker. A success starts
	// the count again; time alone does not. A connection that takes too long opens it at
	// once, unless the upstream has answered or reported meanwhile.
	Failures int `yaml:"failures"`
	// Open is how long a breaker stays open the first time. The time doubles
	// each time the upstream fails again before it has worked for OpenMax. A job that
	// finds no other upstream is let through after Open all the same.
	Open time.Duration `yaml:"open"`
	// OpenMax bounds the doubling.
	OpenMax time.Duration `yaml:"open_max"`
}

// Default is what a file that says nothing means.
func Default() Settings {
	return Settings{Failures: 5, Open: 5 * time.Second, OpenMax: time.Minute}
}

const (
	maxFailures = 1_000_000
	minOpen     = time.Millisecond
	maxOpen     = 24 * time.Hour
)

// Check adds what cannot be used to f.
func (s Settings) Check(f *settings.Faults) {
	f.Within("failures", s.Failures, 1, maxFailures)
	if s.Open < minOpen || s.Open > maxOpen {
		f.Add("open", "%v is not between %v and %v", s.Open, minOpen, maxOpen)
	}
	switch {
	case s.OpenMax < s.Open:
		f.Add("open_max", "%v is less than breaker.open, %v", s.OpenMax, s.Open)
	case s.OpenMax > maxOpen:
		f.Add("open_max", "%v is more than %v", s.OpenMax, maxOpen)
	}
}
