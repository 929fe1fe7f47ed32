// Package breaker keeps one circuit breaker for each upstream: after repeated
// failure an upstream gets no job for a while, then one job as a probe, and its
// share again once a probe succeeds.
//
// The states and rules are those of sony/gobreaker, and a test holds one
// against the other. That library is not used here because it reads the wall
// clock, and the simulator runs these breakers in virtual time. It also has no
// growing open time, no question without side effects, and no way out of a
// half-open state whose verdict is lost.
//
// Nothing here has a lock or a clock: the pool's owner serialises all calls.
package breaker

import (
	"math/rand/v2"
	"time"
)

const (
	// jitter is the share by which an open time is made longer or shorter at
	// random, beyond OpenMax too. Sidecars that saw an upstream fail together
	// must not all try it again together.
	jitter = 0.2
	// probeTimeout is how long a half-open breaker waits for its probe's
	// verdict before it lets another job through. A verdict can be lost, or
	// take hours.
	probeTimeout = time.Minute
)

// Breaker is the breaker of one upstream.
type Breaker struct {
	settings Settings
	rng      *rand.Rand

	state    State
	since    time.Time     // when it came into state; zero if it never changed
	epoch    int           // counts the changes of state
	until    time.Time     // when Enter may next let a job through; zero is now
	soonest  time.Time     // when it would, had the open time not grown
	failures int           // in a row, while closed
	failing  bool          // most jobs of all sidecars that ended there of late failed
	probes   int           // counts the jobs let through while half open
	trips    int           // openings since it last worked for OpenMax
	open     time.Duration // the last open time, before jitter
}

// Entry is one job that was let through.
type Entry struct {
	epoch   int // of the breaker when the job was let through
	probe   int // its number among those let through while half open; 0 in other states
	counted bool
}

// Ready reports, without side effects, whether Enter lets a job through at now.
func (b *Breaker) Ready(now time.Time) bool { return !now.Before(b.until) }

// Enter lets one job through, or refuses with ok false. The caller calls Tell
// when the upstream has shown whether it works: when its response begins, or at
// the failure.
func (b *Breaker) Enter(now time.Time) (e Entry, ok bool) {
	if !b.Ready(now) {
		return Entry{}, false
	}
	if b.state == Open {
		b.change(now, HalfOpen)
	}
	e.epoch = b.epoch
	if b.state == HalfOpen {
		b.probes++
		e.probe = b.probes // the verdict of an overdue probe still counts if it comes
		b.until = now.Add(probeTimeout)
	}
	return e, true
}

// Tell counts the verdict on a job, unless it has one, or the breaker has changed its
// state since the job was let through: an old verdict says nothing about the upstream now.
func (b *Breaker) Tell(now time.Time, e *Entry, v Verdict) {
	if e.counted || e.epoch != b.epoch {
		return
	}
	e.counted = true
	switch v {
	case Healthy:
		b.failures, b.failing = 0, false
		if b.state == HalfOpen {
			b.change(now, Closed)
		}
	case Unhealthy:
		b.failures++
		if b.state == HalfOpen || b.failing || b.failures >= b.settings.Failures {
			b.trip(now)
		}
	case Unreachable:
		b.trip(now)
	case Unknown:
		if e.probe == b.probes { // the newest
			b.until = time.Time{} // the next job is the probe
		}
	}
}

// Hear takes in what the upstream tells of the jobs of all sidecars: how many
// ended since it last told, and how many of them failed; others is how many of
// those this breaker has no verdict on. Where at least half failed, one failure
// of this sidecar's own opens the breaker, and it stays open while others see
// jobs fail there. Without a failure of its own it stays closed: somebody else's
// jobs may be at fault.
func (b *Breaker) Hear(now time.Time, ended, failed, others float64) {
	if ended > 0 {
		b.failing = 2*failed >= ended
	}
	if b.failing && (b.state == Closed && b.failures > 0 || b.state == Open && others >= 1) {
		b.trip(now)
	}
}

// trip opens the breaker: for twice as long as the last time, unless the
// upstream has worked for OpenMax since.
func (b *Breaker) trip(now time.Time) {
	if b.state == Closed && now.Sub(b.since) >= b.settings.OpenMax {
		b.trips, b.open = 0, 0
	}
	b.trips++
	b.open = min(max(2*b.open, b.settings.Open), b.settings.OpenMax)
	stretch := 1 + jitter*(2*b.rng.Float64()-1)
	b.until = now.Add(time.Duration(float64(b.open) * stretch))
	b.soonest = now.Add(time.Duration(float64(b.settings.Open) * stretch))
	b.change(now, Open)
}

// Hasten lets the probe of an open breaker through as early as if the open time had not
// grown. It grows on from there all the same.
func (b *Breaker) Hasten() {
	if b.state == Open && b.soonest.Before(b.until) {
		b.until = b.soonest
	}
}

func (b *Breaker) change(now time.Time, to State) {
	b.state, b.since = to, now
	b.epoch++
	if to == Closed {
		b.until = time.Time{}
	}
}

// Status is what is known of the breaker. Asking changes nothing.
func (b *Breaker) Status() Status {
	return Status{State: b.state, Since: b.since, Until: b.until, Trips: b.trips}
}
