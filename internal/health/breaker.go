package health

import (
	"errors"
	"time"
)

const (
	// jitter is the largest random change of an open time, as a share of it, beyond OpenMax too. Sidecars that
	// saw an upstream fail together must not all try it again together.
	jitter = 0.2
	// probeTimeout is how long a half-open breaker waits for the result of its probe before it lets another job through.
	// A result can be lost, or take hours.
	probeTimeout = time.Minute
	// checksInARow is how many health checks must fail in a row to open the breaker.
	checksInARow = 2
)

// ErrRefused is the error of a poll or a health check whose connection was refused: nothing listens at the address.
var ErrRefused = errors.New("connection refused")

// state is the state of a breaker; the package comment has the drawing.
type state uint8

const (
	// closed lets every job through. The gate is closed, until is zero, and the upstream is not down.
	closed state = iota
	// open lets no job through before until, and then one, which makes it half open. The gate is open.
	open
	// halfOpen has let at least one job through, the probe, and waits for its result. At the time until it lets another
	// job through. The gate is half open.
	halfOpen
)

// Breaker is the circuit breaker of one upstream. The library's gate decides when it opens and closes. The breaker adds
// what the gate lacks: open times that grow, failures that other sidecars see, health checks, and probes without a result.
type Breaker struct {
	cfg  *Config
	gate gate

	state state
	since time.Time // when it opened or closed last; zero is never
	epoch int32     // number of times that it opened or closed
	why   string    // it opened
	tries tries

	row    row
	fleet  fleet
	checks checks
	down   time.Time // since when the upstream refuses connections; zero is not down
}

// tries is when a breaker that is open lets jobs through.
type tries struct {
	until  time.Time // when the next job can enter; zero is now
	early  time.Time // when it could, had the open time not grown
	opened int       // how often it opened since the upstream last worked for OpenMax
	probes int32     // jobs let through while half open
}

// checks are the health checks of an upstream.
type checks struct {
	failed int  // in a row
	opened bool // they opened the breaker last, or kept it open
}

// Entry is one job at a breaker.
type Entry struct {
	epoch int32 // of the breaker when the job entered
	probe int32 // its number among the probes; 0 is none
	past  bool  // it was sent although the breaker refused it
}

// Init makes the breaker a closed one. It keeps cfg.
func (b *Breaker) Init(cfg *Config) {
	b.cfg = cfg
	b.gate.renew(cfg)
}

// Ready reports whether Enter lets a job through at now. It changes nothing.
func (b *Breaker) Ready(now time.Time) bool { return !now.Before(b.tries.until) }

// ReadyEarly reports whether Enter would let a job through had the open time not grown.
func (b *Breaker) ReadyEarly(now time.Time) bool {
	return b.state == open && !now.Before(b.tries.early)
}

// Enter lets one job through, or refuses with ok false. early ignores the growth of the open time.
func (b *Breaker) Enter(now time.Time, early bool) (e Entry, ok bool) {
	ok = (b.Ready(now) || early && b.ReadyEarly(now)) && b.gate.enter()
	if ok && b.state != closed {
		b.state = halfOpen
		b.tries.probes++
		b.tries.until = now.Add(probeTimeout)
		return Entry{epoch: b.epoch, probe: b.tries.probes}, true
	}
	return Entry{epoch: b.epoch, past: !ok}, ok
}

// The result of a job is ignored if the breaker has opened or closed since the job entered: what is old says nothing of
// the upstream now. Each job has at most one result.

// Succeeded records the success of a job. It closes a breaker that is not closed, also for a job that was sent past it.
func (b *Breaker) Succeeded(now time.Time, e Entry) {
	switch {
	case e.epoch != b.epoch:
	case e.past:
		b.gate.renew(b.cfg) // there is no other way to close a gate
		b.close(now)
	default:
		b.row.n, b.fleet.most = 0, false
		b.gate.done(nil)
		if b.state != closed {
			b.close(now)
		}
	}
}

// Unjudged records the end of a job that says nothing about the upstream's health. If the job was the newest probe, the
// next job is a probe.
func (b *Breaker) Unjudged(e Entry) {
	if e.epoch == b.epoch && !e.past && e.probe == b.tries.probes {
		b.tries.until = time.Time{}
	}
}

// Failed records the failure of a job.
func (b *Breaker) Failed(now time.Time, e Entry, f Failure) {
	if e.epoch != b.epoch || e.past {
		return
	}
	b.row.add(f)
	switch opens := b.gate.fail(b.fleet.most); {
	case b.state == halfOpen: // a gate that is half open opens at once
		b.open(now, "the probe failed: "+f.One)
	case !opens:
	case b.fleet.most && b.row.n < b.cfg.Failures:
		b.open(now, f.One+", and at least half of the jobs of all sidecars fail there")
	default:
		b.open(now, b.row.String())
	}
}

// Unreachable records a connection that took too long. It opens the breaker at once, so the result of the job is ignored.
func (b *Breaker) Unreachable(now time.Time, e Entry) {
	if !e.past && e.epoch == b.epoch {
		b.row.n++
		b.force(now, "a connection timed out")
	}
}

// Refused records a refused connection: the upstream is down, and its breaker opens at once.
func (b *Breaker) Refused(now time.Time) {
	if b.down.IsZero() {
		b.down = now
	}
	if b.state != open {
		b.force(now, ErrRefused.Error())
	}
}

// Reached records a response or a report: an upstream that was down no longer is, and its breaker closes.
func (b *Breaker) Reached(now time.Time) {
	if !b.down.IsZero() {
		b.checks.failed = 0
		b.gate.renew(b.cfg)
		b.close(now)
	}
}

// Checked records a health check: why it failed, or nil if it passed. A refused connection, or two failures in a row, open
// the breaker until the next check is over; interval is the mean time between two. A check that passed ends an open time that
// failed checks started. It says little about whether jobs succeed, so it shortens any other open time only to what it would
// be without growth.
func (b *Breaker) Checked(now time.Time, interval time.Duration, why error) {
	if why == nil {
		b.Reached(now)
		if b.checks.opened && b.state == open {
			b.tries.until = now
		}
		b.checks = checks{}
		b.hasten()
		return
	}
	b.checks.failed++
	switch {
	case errors.Is(why, ErrRefused):
		b.Refused(now)
	case b.checks.failed < checksInARow:
		return
	case !b.checks.opened || b.state != open:
		b.force(now, "health check failed: "+Root(why).Error())
	}
	b.checks.opened = true
	if next := now.Add(silence * interval); b.tries.until.Before(next) {
		b.tries.until = next
	}
}

// Root returns the innermost error: those around it repeat the address.
func Root(err error) error {
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return err
}

// Reported records the upstream's counters of the jobs of all sidecars: those that ended, and those of them that failed for a
// reason of its own; negative is unknown. Where at least half of the jobs failed, one failure of this sidecar's own opens
// the breaker, and it stays open while the jobs of others fail. Without a failure of its own it stays closed: the
// jobs of the others may be at fault.
func (b *Breaker) Reported(now time.Time, ended, failed float64) {
	others := b.fleet.report(ended, failed)
	switch {
	case !b.fleet.most:
	case b.state == closed && b.row.n > 0:
		b.force(now, "a job failed, and so did at least half of the jobs of all sidecars there")
	case b.state == open && others >= 1:
		b.open(now, "jobs of other sidecars fail there")
	}
}

// CountFailure counts a failure of this sidecar's own, which is also in the upstream's counters.
func (b *Breaker) CountFailure() { b.fleet.own++ }

// ForgetReports forgets the counters of an upstream that restarted. The breaker stays as it is.
func (b *Breaker) ForgetReports() { b.fleet = fleet{} }

// force opens the breaker at once, regardless of the number of failures in a row.
func (b *Breaker) force(now time.Time, why string) {
	if b.state != closed || b.gate.enter() {
		b.gate.fail(true)
	}
	b.open(now, why)
}

// open follows the gate: for twice the last open time, unless the upstream has worked for OpenMax since.
func (b *Breaker) open(now time.Time, why string) {
	t := &b.tries
	if b.state == closed && now.Sub(b.since) >= b.cfg.OpenMax() {
		t.opened = 0
	}
	grown := min(b.cfg.Open<<min(t.opened, doublings), b.cfg.OpenMax())
	t.opened++
	stretch := 1 + jitter*(2*b.cfg.Rand.Float64()-1)
	t.until = now.Add(time.Duration(float64(grown) * stretch))
	t.early = now.Add(time.Duration(float64(b.cfg.Open) * stretch))
	b.turn(now, open, why)
}

func (b *Breaker) close(now time.Time) {
	b.tries.until, b.row.n, b.down, b.checks.opened = time.Time{}, 0, time.Time{}, false
	b.turn(now, closed, "")
}

func (b *Breaker) turn(now time.Time, to state, why string) {
	b.state, b.since, b.why = to, now, why
	b.epoch++
	b.gate.done, b.tries.probes = nil, 0
}

// hasten lets the probe of an open breaker through as early as if the open time had not grown. The growth of the next open
// time is kept.
func (b *Breaker) hasten() {
	if b.state == open && b.tries.early.Before(b.tries.until) {
		b.tries.until = b.tries.early
	}
}
