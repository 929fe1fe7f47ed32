package pool

import (
	"errors"
	"fmt"
	"time"
)

// errFailed is what gates are told of a failure.
var errFailed = errors.New("failed")

const (
	// jitter is the share by which an open time is made longer or shorter at
	// random, beyond openMax too. Sidecars that saw an upstream fail together
	// must not all try it again together.
	jitter = 0.2
	// probeTimeout is how long a half-open breaker waits for its probe's
	// verdict before it lets another job through. A verdict can be lost, or
	// take hours.
	probeTimeout = time.Minute
)

// health is the breaker of one upstream, and when it is asked: its gate with an open time that
// grows, the failures that other sidecars see, and probes whose verdict is lost.
type health struct {
	gate Gate

	opened bool      // and not closed since: the breaker is open, or half open once until has passed
	why    string    // it opened, in words
	since  time.Time // when it opened or closed last; zero is never
	epoch  int       // counts that
	until  time.Time // when it may next let a job through; zero is now
	// soonest is when it could, had the open time not grown.
	soonest time.Time
	trips   int // openings since it last worked for openMax

	row     int     // failures in a row
	mixed   bool    // of several kinds
	last    Outcome // the kind of the last one
	tripNow bool    // the failure that the gate is told of opens it, however many there were
	tripped bool    // it did

	done   func(error) // takes the verdicts on jobs; nil before the first since it opened or closed
	probes int         // jobs let through half open

	others others
	missed int       // health checks in a row
	down   time.Time // since when it refuses connections; zero is not down
	sick   bool      // it was a health check that opened it last, or kept it open
	shed   time.Time // until then it gets no job if another upstream may, because it refused one for load
}

// entry is one job at the breaker.
type entry struct {
	epoch int  // of the breaker when the job came
	probe int  // its number among those let through half open; 0 is none
	past  bool // it was sent although the breaker refused it
}

// renew gives it a gate that is closed.
func (h *health) renew(cfg *Config) {
	h.gate = cfg.Gate(func(inARow int) bool {
		h.tripped = h.tripNow || inARow >= cfg.Breaker.Failures
		return h.tripped
	})
}

// ready reports, without side effects, whether enter lets a job through at now.
func (h *health) ready(now time.Time) bool { return !now.Before(h.until) }

// readyEarly reports whether enter would let a job through had the open time not grown.
func (h *health) readyEarly(now time.Time) bool {
	return h.opened && h.done == nil && !now.Before(h.soonest)
}

// enter lets one job through, or refuses with ok false. early does not wait for the open time's growth.
func (h *health) enter(now time.Time, early bool) (e entry, ok bool) {
	ok = h.ready(now) || early && h.readyEarly(now)
	if ok && h.done == nil {
		done, err := h.gate()
		if ok = err == nil; ok {
			h.done = done
		}
	}
	if ok && h.opened {
		h.probes++
		h.until = now.Add(probeTimeout)
		return entry{epoch: h.epoch, probe: h.probes}, true
	}
	return entry{epoch: h.epoch, past: !ok}, ok
}

// record takes how a job fared, unless the breaker has opened or closed since the job came: what is old
// says nothing of the upstream now. An answer in panic closes the breaker. It is called once for a job.
func (h *health) record(now time.Time, e entry, o Outcome, cfg *Config) {
	switch {
	case e.epoch != h.epoch:
	case o == Answered && e.past:
		h.renew(cfg) // there is no other way to close a gate
		h.close(now)
	case e.past:
	case o == Answered:
		h.row, h.others.most = 0, false
		h.done(nil)
		if h.opened {
			h.close(now)
		}
	case o == Gone || o == Moved || o == NotStarted:
		if e.probe == h.probes { // the newest
			h.until = time.Time{} // the next job is the probe
		}
	default:
		h.failed(now, o, cfg)
	}
}

// failed takes a failure.
func (h *health) failed(now time.Time, o Outcome, cfg *Config) {
	h.row, h.mixed, h.last = h.row+1, h.row > 0 && (h.mixed || h.last != o), o
	h.tripNow, h.tripped = h.opened || h.others.most, h.opened // a gate that is half open does not ask
	h.done(errFailed)
	switch {
	case !h.tripped:
	case h.opened:
		h.trip(now, "the job that tried it again failed: "+evidence[o][0], cfg)
	case h.others.most && h.row < cfg.Breaker.Failures:
		h.trip(now, evidence[o][0]+", while at least half of the jobs of all sidecars fail there", cfg)
	default:
		h.trip(now, h.inARow(), cfg)
	}
}

// unreachable takes a connection that took too long: it opens the breaker at once. So what record takes of
// the job counts no more.
func (h *health) unreachable(now time.Time, e entry, cfg *Config) {
	if !e.past && e.epoch == h.epoch {
		h.row++
		h.tripAnyway(now, "it took no connection in time", cfg)
	}
}

// tripAnyway opens the breaker with one failure, however many there were.
func (h *health) tripAnyway(now time.Time, why string, cfg *Config) {
	if h.done == nil && !h.opened {
		h.done, _ = h.gate() // which a closed gate does
	}
	if h.done != nil {
		h.tripNow = true
		h.done(errFailed)
	}
	h.trip(now, why, cfg)
}

// trip is called when the gate has opened: for twice as long as the last time, unless the
// upstream has worked for openMax since.
func (h *health) trip(now time.Time, why string, cfg *Config) {
	s := &cfg.Breaker
	if !h.opened && now.Sub(h.since) >= s.openMax() {
		h.trips = 0
	}
	open := min(s.Open<<min(h.trips, doublings), s.openMax())
	h.trips++
	stretch := 1 + jitter*(2*cfg.Rand.Float64()-1)
	h.until = now.Add(time.Duration(float64(open) * stretch))
	h.soonest = now.Add(time.Duration(float64(s.Open) * stretch))
	h.turn(now, true, why)
}

// hear takes in a report. Where at least half of the jobs of all sidecars failed, one failure
// of this sidecar's own opens the breaker, and it stays open while others see
// jobs fail there. Without a failure of its own it stays closed: somebody else's
// jobs may be at fault.
func (h *health) hear(now time.Time, r Report, cfg *Config) {
	failures := h.others.compare(r)
	switch {
	case !h.others.most:
	case !h.opened && h.row > 0:
		h.tripAnyway(now, "a job failed, and so did at least half of the jobs of all sidecars there", cfg)
	case h.opened && h.done == nil && failures >= 1:
		h.trip(now, "jobs of other sidecars fail there", cfg)
	}
}

func (h *health) close(now time.Time) {
	h.until, h.row, h.down = time.Time{}, 0, time.Time{}
	h.turn(now, false, "")
}

func (h *health) turn(now time.Time, opened bool, why string) {
	h.opened, h.since, h.why = opened, now, why
	h.epoch++
	h.done, h.probes = nil, 0
}

// refused takes a refused connection: the upstream is down, and its breaker opens at once.
func (h *health) refused(now time.Time, cfg *Config) {
	if h.down.IsZero() {
		h.down = now
	}
	if !h.opened || h.done != nil {
		h.tripAnyway(now, ErrRefused.Error(), cfg)
	}
}

// reached takes a response: an upstream that was down no longer is.
func (h *health) reached(now time.Time, cfg *Config) {
	if !h.down.IsZero() {
		h.missed, h.sick = 0, false
		h.renew(cfg)
		h.close(now)
	}
}

// checked takes a health check: why it failed, or nil if it did not. A refused connection, or two failures in a row, open
// the breaker until the next check is over. One that passed ends the open time that they began; it says little
// about how jobs fare, so it takes only the growth of any other.
func (h *health) checked(now time.Time, why error, cfg *Config) {
	if why == nil {
		h.reached(now, cfg)
		if h.missed = 0; h.sick && h.opened && h.done == nil {
			h.until = now
		}
		h.sick = false
		h.hasten()
		return
	}
	h.missed++
	switch {
	case errors.Is(why, ErrRefused):
		h.refused(now, cfg)
	case h.missed < failedInARow:
		return
	case !h.sick || !h.opened || h.done != nil:
		h.tripAnyway(now, "health check failed: "+rootOf(why).Error(), cfg)
	}
	h.sick = true
	if next := now.Add(silence * cfg.Interval); h.until.Before(next) {
		h.until = next
	}
}

// rootOf is the innermost error: those around it repeat the address.
func rootOf(err error) error {
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return err
}

// hasten lets the probe of an open breaker through as early as if the open time had not
// grown. It grows on from there all the same.
func (h *health) hasten() {
	if h.opened && h.done == nil && h.soonest.Before(h.until) {
		h.until = h.soonest
	}
}

// evidence is each outcome that speaks against an upstream, in words: one of them, and many.
var evidence = [Outcomes][2]string{
	Failed:    {"an answer of 500 or more", "answers of 500 or more"},
	Refused:   {"a connection refused or lost", "connections refused or lost"},
	NoAnswer:  {"a job without an answer", "jobs without an answer"},
	TimedOut:  {"no answer in time", "jobs without an answer in time"},
	Truncated: {"an answer cut short", "answers cut short"},
}

// inARow is why enough failures opened the breaker.
func (h *health) inARow() string {
	switch {
	case h.row == 1:
		return evidence[h.last][0]
	case h.mixed:
		return fmt.Sprintf("%d failures in a row, the last: %s", h.row, evidence[h.last][0])
	}
	return fmt.Sprintf("%d %s in a row", h.row, evidence[h.last][1])
}

// BreakerState is the state of a breaker, as logs and the admin interface name it.
type BreakerState string

// The states, a closed set.
const (
	// BreakerClosed lets every job through.
	BreakerClosed BreakerState = "closed"
	// BreakerHalfOpen lets one job through, the probe, and waits for its verdict.
	BreakerHalfOpen BreakerState = "half-open"
	// BreakerOpen lets none through.
	BreakerOpen BreakerState = "open"
)

// Breaker is what is known of an upstream's breaker, for people.
type Breaker struct {
	// State is closed, half-open or open. It is half-open as soon as its open time is over.
	State BreakerState `json:"state"`
	// Why says why it opened; absent while it is closed.
	Why string `json:"why,omitempty"`
	// Since is when it opened or closed last; absent if it never did.
	Since time.Time `json:"since,omitzero"`
	// Until is when it next lets a job through; absent is now.
	Until time.Time `json:"until,omitzero"`
	// Trips counts how often it opened without working for twelve times breaker.open in between.
	Trips int `json:"trips,omitzero"`
}

// status is what is known at now. It changes nothing.
func (h *health) status(now time.Time) Breaker {
	b := Breaker{State: BreakerClosed, Why: h.why, Since: h.since, Until: h.until, Trips: h.trips}
	switch {
	case !h.opened:
	case h.done == nil && now.Before(h.until):
		b.State = BreakerOpen
	default:
		b.State = BreakerHalfOpen
	}
	return b
}
