package breaker

import (
	"fmt"
	"time"
)

// Config is the breakers' configuration; zero values mean the defaults.
type Config struct {
	// Failures in a row open a breaker; 0 means 5. Time alone never forgives
	// one, a success always does.
	Failures int
	// Open is how long a breaker stays open the first time; 0 means 5 s. It
	// doubles each time the upstream fails again before it has stayed closed
	// for OpenMax.
	Open time.Duration
	// OpenMax bounds the doubling; 0 means 60 s.
	OpenMax time.Duration
	// Jitter is the share by which each open time is made longer or shorter
	// at random, OpenMax notwithstanding, so that sidecars that saw an
	// upstream fail together do not all try it again together; 0 means 0.2.
	Jitter float64
	// Probe is how long the one job that tries a half-open upstream may go
	// without a verdict before another one is let through; 0 means 60 s. It
	// bounds the harm of a verdict that is lost or long in coming.
	Probe time.Duration
}

const (
	maxFailures = 1_000_000
	minOpen     = time.Millisecond
	maxOpen     = 24 * time.Hour
)

func (c Config) withDefaults() (Config, error) {
	if c.Failures == 0 {
		c.Failures = 5
	}
	if c.Open == 0 {
		c.Open = 5 * time.Second
	}
	if c.OpenMax == 0 {
		c.OpenMax = time.Minute
	}
	if c.Jitter == 0 {
		c.Jitter = 0.2
	}
	if c.Probe == 0 {
		c.Probe = time.Minute
	}
	switch {
	case c.Failures < 1 || c.Failures > maxFailures:
		return c, fmt.Errorf("breaker: failures %d is not between 1 and %d", c.Failures, maxFailures)
	case c.Open < minOpen || c.Open > maxOpen:
		return c, fmt.Errorf("breaker: open %v is not between %v and %v", c.Open, minOpen, maxOpen)
	case c.OpenMax < c.Open:
		return c, fmt.Errorf("breaker: open_max %v is shorter than open %v", c.OpenMax, c.Open)
	case c.OpenMax > maxOpen:
		return c, fmt.Errorf("breaker: open_max %v is longer than %v", c.OpenMax, maxOpen)
	case !(c.Jitter > 0 && c.Jitter < 1): // in this form it refuses NaN too
		return c, fmt.Errorf("breaker: jitter %v is not between 0 and 1", c.Jitter)
	case c.Probe < minOpen || c.Probe > maxOpen:
		return c, fmt.Errorf("breaker: probe %v is not between %v and %v", c.Probe, minOpen, maxOpen)
	}
	return c, nil
}
