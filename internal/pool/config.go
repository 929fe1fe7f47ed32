package pool

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

// Settings is the part of a Config that may change while jobs run. All are required but Shadow.
type Settings struct {
	// Policy picks among the eligible upstreams.
	Policy selection.Policy
	// Shadow is asked about each job, too, and not obeyed; nil asks nobody.
	Shadow *Shadow
	// Detector makes the overload detector of an upstream.
	Detector func() overload.Detector
	// Interval is the mean time between two reports of one upstream. The load in
	// a report counts for three intervals, a cache listing for twelve.
	Interval time.Duration
	// Breaker says when a breaker opens, and for how long.
	Breaker BreakerSettings
	// Heavy says which jobs are heavy.
	Heavy HeavySettings
}

// Shadow is a policy that somebody would like to try. It draws from a random source of its own,
// so that the other's choices are the same without it.
type Shadow struct {
	Policy selection.Policy
	Rand   *rand.Rand
}

// Config says how a pool chooses. Settings, Gate and Rand are required.
type Config struct {
	Settings
	// Gate makes the breaker of an upstream. It asks trips at each failure whether so many in a row open it.
	Gate func(trips func(inARow int) bool) Gate
	// Rand breaks ties and draws samples.
	Rand *rand.Rand
	// Hold is how long an upstream that refused a job for load gets no other
	// while there is another to ask. Without it an upstream that refuses at once
	// would look idle and attract the rest. Default 1 s; negative is not at all.
	Hold time.Duration
}

// Gate is the circuit breaker of one upstream: it counts failures in a row, and opens. It lets a job
// through, or refuses it with an error. done takes the verdict on a job, nil for a success. It serves all
// jobs until the gate opens or closes; while the gate is half open, the first verdict counts.
type Gate func() (done func(error), err error)

func (c *Config) validate() error {
	if c.Policy == nil || c.Detector == nil || c.Gate == nil || c.Rand == nil {
		return errors.New("pool: Policy, Detector, Gate and Rand are required")
	}
	if c.Hold == 0 {
		c.Hold = time.Second
	}
	if c.Interval <= 0 {
		return fmt.Errorf("pool: Interval %v must be positive", c.Interval)
	}
	var f settings.Faults
	c.Breaker.Check(f.In("breaker"))
	return f.Err()
}

// BreakerSettings is what an operator sets of the breakers.
type BreakerSettings struct {
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

// DefaultBreaker is what a file that says nothing means.
func DefaultBreaker() BreakerSettings {
	return BreakerSettings{Failures: 5, Open: 5 * time.Second}
}

// MinOpen is the shortest open time of a breaker.
const MinOpen = time.Millisecond

const (
	maxFailures = 1_000_000
	maxOpen     = 24 * time.Hour
)

// Check adds what cannot be used to f.
func (s BreakerSettings) Check(f *settings.Faults) {
	f.Within("failures", s.Failures, 1, maxFailures)
	if s.Open < MinOpen || s.Open > maxOpen {
		f.Add("open", "%v is not between %v and %v", s.Open, MinOpen, maxOpen)
	}
}

// openMax is the longest open time, which as many doublings reach.
func (s BreakerSettings) openMax() time.Duration { return 12 * s.Open }

const doublings = 4
