package health

import (
	"fmt"
	"time"
)

const (
	// jitter randomises open times by up to this share, up or down, even above OpenMax. Without it, all sidecars that
	// saw an upstream fail would try it again at the same instant.
	jitter = 0.2
	// trialTimeout is how long a half-open breaker waits for the result of its trial job before it lets another job through.
	// A result can be lost, or take hours.
	trialTimeout = time.Minute
)

// state is the state of a breaker; the package comment has the drawing.
type state uint8

const (
	// closed lets every job through. The gate is closed, until is zero, and the upstream is not down.
	closed state = iota
	// open lets no job through before until, and then one, which makes it half open. The gate is open.
	open
	// halfOpen has let a trial job through and waits for its result. If there is none before until, it lets another job
	// through. The gate is half open.
	halfOpen
)

// Breaker is the circuit breaker of one upstream. The library's gate decides when it opens and closes. The breaker adds
// what the gate lacks: open times that grow, failures that other sidecars see, health checks, and trial jobs without a result.
type Breaker struct {
	cfg  *Config
	gate gate

	state state
	since time.Time // when it last opened or closed; zero means never
	epoch int32     // number of times that it opened or closed
	why   string    // why it opened
	tries tries

	streak streak
	broken broken
	fleet  fleet
	checks checks
	down   time.Time // when the upstream began to refuse connections; zero means that it is not down
}

// tries says when an open breaker lets the next job through.
type tries struct {
	until  time.Time // when the next job can enter; zero means now
	early  time.Time // what until would be if the open time had not doubled
	opened int       // times opened, counted again from 0 once the breaker has been closed for OpenMax
	trials int32     // jobs let through while half open
}

// Entry is one job at a breaker.
type Entry struct {
	epoch    int32 // of the breaker when the job entered
	trial    int32 // number of the trial job; 0 means that it is no trial job
	bypassed bool  // it was sent although the breaker refused it
}

// Init makes the breaker a closed one. It keeps cfg.
func (b *Breaker) Init(cfg *Config) {
	b.cfg = cfg
	b.gate.renew(cfg)
}

// Ready reports whether Enter lets a job through at now. It changes nothing.
func (b *Breaker) Ready(now time.Time) bool { return !now.Before(b.tries.until) }

// ReadyEarly reports whether Enter would let a job through if the open time had not doubled.
func (b *Breaker) ReadyEarly(now time.Time) bool {
	return b.state == open && !now.Before(b.tries.early)
}

// Enter lets one job through, or refuses it with ok false. With early, the first, undoubled open time counts.
func (b *Breaker) Enter(now time.Time, early bool) (e Entry, ok bool) {
	ok = (b.Ready(now) || early && b.ReadyEarly(now)) && b.gate.enter()
	if ok && b.state != closed {
		b.state = halfOpen
		b.tries.trials++
		b.tries.until = now.Add(trialTimeout)
		return Entry{epoch: b.epoch, trial: b.tries.trials}, true
	}
	return Entry{epoch: b.epoch, bypassed: !ok}, ok
}

// Each job that entered reports its result at most once: by Started, Failed, Unreachable or Inconclusive. After Started
// it also reports the end of its response. The breaker ignores results of jobs that entered before it last opened or
// closed: they say nothing about the upstream's health now.

// Started records the start of a response with a good status. It closes a breaker that is open or half open, even if
// the job was sent although the breaker refused it. The caller passes the returned entry on when the response ends.
func (b *Breaker) Started(now time.Time, e Entry) Entry {
	switch {
	case e.epoch != b.epoch:
		return e
	case e.bypassed:
		b.gate.renew(b.cfg) // an open gate can be closed in no other way
	case b.state == closed:
		if b.broken.n == 0 || now.Sub(b.broken.last) >= b.cfg.OpenMax() {
			b.succeed()
		}
		return e
	default:
		b.fleet.mostFailed = false
		b.gate.done(nil)
	}
	b.close(now)
	b.broken.last = now
	b.gate.enter() // so that the gate can count the end of the response
	return Entry{epoch: b.epoch}
}

// Ended records the end of a complete response, after Started.
func (b *Breaker) Ended(e Entry) {
	if e.epoch == b.epoch && b.state == closed && b.broken.n > 0 {
		b.succeed()
	}
}

// succeed resets the counts of failures in a row of a closed breaker.
func (b *Breaker) succeed() {
	b.streak.n, b.broken.n, b.fleet.mostFailed, b.fleet.inARow = 0, 0, false, 0
	b.gate.done(nil)
}

// Inconclusive records the end of a job that says nothing about the upstream's health. If the job was the newest trial
// job, the next job becomes the trial job.
func (b *Breaker) Inconclusive(e Entry) {
	if e.epoch == b.epoch && !e.bypassed && e.trial == b.tries.trials {
		b.tries.until = time.Time{}
	}
}

// Failed records the failure of a job.
func (b *Breaker) Failed(now time.Time, e Entry, f Failure) {
	if e.epoch != b.epoch || e.bypassed {
		return
	}
	b.streak.add(f)
	if f.Late {
		b.broken = broken{b.broken.n + 1, now}
	}
	switch opens := b.gate.fail(b.fleet.mostFailed || f.Late && b.broken.n >= b.cfg.Failures); {
	case b.state == halfOpen: // a half-open gate opens at the first failure
		b.open(now, "the trial job failed: "+f.One)
	case !opens:
	case b.fleet.mostFailed && b.streak.n < b.cfg.Failures:
		b.open(now, f.One+", and at least half of the jobs of all sidecars fail there")
	case b.streak.n < b.cfg.Failures:
		b.open(now, "again "+f.One+" after the breaker had closed")
	default:
		b.open(now, b.streak.String())
	}
}

// Unreachable records a connect timeout. It opens the breaker at once, so a later result of the job is ignored.
func (b *Breaker) Unreachable(now time.Time, e Entry) {
	if !e.bypassed && e.epoch == b.epoch {
		b.streak.n++
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

// Reached records a report or a passed health check. If the upstream was down, its breaker closes: it accepts
// connections again.
func (b *Breaker) Reached(now time.Time) {
	if !b.down.IsZero() {
		b.checks.failed, b.broken.n = 0, 0
		b.gate.renew(b.cfg)
		b.close(now)
	}
}

// Reported records the upstream's counters of the jobs of all sidecars: ended jobs, and ended jobs that failed because of the
// upstream; a negative counter is unknown. This sidecar's own failures are subtracted from both: the gate has counted them. If
// at least half of the remaining jobs failed, one failure of this sidecar's own jobs opens the breaker, and it stays open while
// jobs of other sidecars fail. Without a failure of its own, it opens only after Failures failed jobs of other sidecars in a
// row, without a success of any sidecar's job in between: otherwise the other sidecars' jobs may be the cause.
func (b *Breaker) Reported(now time.Time, ended, failed float64) {
	others := b.fleet.report(ended, failed)
	switch {
	case !b.fleet.mostFailed:
	case b.state == closed && b.streak.n > 0:
		b.force(now, "a job failed, and so did at least half of the jobs of all sidecars there")
	case b.state == closed && others >= 1 && b.fleet.inARow >= float64(b.cfg.Failures):
		b.force(now, fmt.Sprintf("%.0f jobs of other sidecars failed there in a row", b.fleet.inARow))
	case b.state == open && others >= 1:
		b.open(now, "jobs of other sidecars fail there")
	}
}

// CountFailure counts a failure of one of this sidecar's own jobs. The upstream's counters contain it, too, so it must
// not be counted as another sidecar's.
func (b *Breaker) CountFailure() { b.fleet.own++ }

// ForgetReports drops the counters that an upstream reported before it restarted. The state of the breaker does not
// change.
func (b *Breaker) ForgetReports() { b.fleet = fleet{} }

// force opens the breaker at once, regardless of the number of failures in a row.
func (b *Breaker) force(now time.Time, why string) {
	if b.state != closed || b.gate.enter() {
		b.gate.fail(true)
	}
	b.open(now, why)
}

// open opens the breaker after the gate has opened: for twice the last open time, or for the first open time if it had
// been closed for OpenMax.
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
	b.change(now, open, why)
}

func (b *Breaker) close(now time.Time) {
	b.tries.until, b.streak.n, b.down, b.checks.opened = time.Time{}, 0, time.Time{}, false
	b.fleet.inARow = 0
	b.change(now, closed, "")
}

func (b *Breaker) change(now time.Time, to state, why string) {
	b.state, b.since, b.why = to, now, why
	b.epoch++
	b.gate.done, b.tries.trials = nil, 0
}
