package quality

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
)

// Mode is the quality of service as a state (N. J. Turner's thesis, 4.5).
type Mode string

// The values of Mode.
const (
	// Unknown: too few jobs ended.
	Unknown Mode = "unknown"
	// Steady: waits do not grow from job to job.
	Steady Mode = "steady"
	// QueueGrows: jobs are complete, but each waits longer for its first byte than the
	// one before, because more work arrives than is completed.
	QueueGrows Mode = "queue grows"
	// JobsFail: submitters get errors, truncated responses or no response. Only the fleet has this mode.
	JobsFail Mode = "jobs fail"
	// AttemptsFail replaces JobsFail for an upstream: retries can hide it from submitters.
	AttemptsFail Mode = "attempts fail"
)

// Text says what the mode means.
func (m Mode) Text() string {
	switch m {
	case Steady:
		return "no job waits longer than the one before"
	case QueueGrows:
		return "more work arrives than is done, and each job waits longer than the one before"
	case JobsFail:
		return "submitters get errors, or their results in part or not at all"
	case AttemptsFail:
		return "retries may hide it from submitters"
	}
	return "too few jobs ended to judge how they are served"
}

// Panic says what panic mode is.
const Panic = "panic: every breaker is open, so jobs go to all upstreams"

// Modes returns the modes by their numbers in the thesis; worst is JobsFail for the fleet, AttemptsFail for an upstream.
func Modes(worst Mode) []Mode { return []Mode{Unknown, Steady, QueueGrows, worst} }

// Number returns the mode's number in the thesis; 0 is unknown.
func (m Mode) Number() int {
	return max(0, slices.Index(Modes(JobsFail), m), slices.Index(Modes(AttemptsFail), m))
}

// Thresholds of the modes. Entering a mode needs more than staying in it (hysteresis), so that
// modes do not flap.
const (
	// The times to first byte count as rising once the trend test's statistic is certain standard deviations, until it
	// falls below doubtful.
	certain, doubtful = 4.0, 1.0
	// The rise must also be large: more than the share muchRise of the level reached, or more than steep seconds in
	// each second, which means that 3 % more work arrives than is completed. It must be at least leastRise seconds.
	muchRise  = 0.5
	steep     = 0.03
	leastRise = 0.05
	// It must last at least riseSpan.
	riseSpan = 10 * time.Second
	// It ends after calm without a rise if times have fallen half-way back, or after plateau in any
	// case.
	calm    = 30 * time.Second
	plateau = 5 * time.Minute

	// Jobs fail if manyLost jobs in a row failed or were incomplete, or manyLost jobs within a
	// minute that are at least the share lostShare of its jobs.
	manyLost  = 3
	lostShare = 0.01
	// The mode ends after manyWhole complete jobs in a row, once the time whole has passed since the last lost job. If
	// few jobs arrive, it ends after one complete job and a minute without a lost job.
	manyWhole = 8
	whole     = 10 * time.Second
)

// scope is the state of the fleet or of one upstream: its mode, and the observations behind it.
type scope struct {
	Status      // its Windows are not set
	fail   Mode // the worst mode: JobsFail or AttemptsFail
	follow trend
	minute ring[tally]     // outcomes of the last minute, by second
	data   ring[CacheHits] // cache hits of the last minute

	ended    time.Duration // when a job last ended
	lost     time.Duration // when a job was last lost
	inRow    int           // lost jobs in a row
	wholeRow int           // complete jobs in a row

	rising     time.Duration // when a rise was last observed
	grew       bool          // the queue grew when jobs started to fail
	base, peak float64       // the time to first byte at the start of the rise, and the maximum since
}

func newScope(now time.Time, fail Mode) *scope {
	return &scope{minute: make(ring[tally], spans[0]), data: make(ring[CacheHits], spans[0]), Status: Status{Mode: Unknown, Since: now}, fail: fail}
}

func (s *scope) observe(now time.Duration, r result, outcome uint8) {
	s.minute.at(now).add(r, outcome)
	switch r {
	case limited, refused:
		return
	case complete:
		s.inRow = 0
		s.wholeRow++
	default:
		s.lost, s.wholeRow = now, 0
		s.inRow++
	}
	s.ended = now
}

// tally returns the outcomes of the last minute.
func (s *scope) tally(now time.Duration) (t tally) {
	s.minute.last(now, spans[0], t.merge)
	return t
}

// next returns the mode at an instant with this load, and the reason if it has changed.
func (s *scope) next(now time.Duration, l load) (Mode, string) {
	if s.Mode != Unknown && now-s.ended > maxAge {
		return Unknown, fmt.Sprintf("no job ended for %v", maxAge)
	}
	minute := s.tally(now)
	bad, jobs := minute.bad()
	s.follow.pace(jobs)
	many := s.inRow >= manyLost || bad >= manyLost && float64(bad) >= lostShare*float64(jobs)
	lately := now-s.lost < whole
	switch {
	case s.Mode == s.fail && (lately || s.wholeRow < manyWhole && (s.wholeRow == 0 || now-s.lost < time.Minute)):
		return s.fail, ""
	case s.Mode == s.fail:
		s.follow.restart(s.lost) // the trend starts again without the jobs before the loss
	case many && lately:
		s.grew = s.Mode == QueueGrows
		return s.fail, s.cause(&minute)
	}
	return s.judge(now, l.idle())
}

// judge returns the mode that follows from the trend, if there is one. If cores are idle, the mode is not QueueGrows:
// rising times then mean that the jobs themselves take longer.
func (s *scope) judge(now time.Duration, idle bool) (Mode, string) {
	var known bool
	s.Trend, known = s.follow.at(now)
	t := &s.Trend
	enough := max(min(muchRise*t.Level, steep*t.Span), leastRise)
	rises := !idle && t.certainty >= certain && t.Rise() >= enough && t.Span+t.Level >= riseSpan.Seconds()
	calmBefore := s.Mode == Unknown || s.Mode == Steady
	if calmBefore {
		s.base, s.peak = t.Level-t.Rise(), t.Level
	}
	s.peak = max(s.peak, t.Level)
	back := t.Level <= (s.base+s.peak)/2 // half-way back to the level before the rise
	still := !idle && !calmBefore && t.certainty >= doubtful && t.Rise() >= leastRise
	goesOn := still || s.Mode == s.fail && s.grew && !idle && !(known && back)
	if rises || goesOn {
		s.rising = now
	}
	rose := now - s.rising
	switch {
	case s.Mode == s.fail:
		cause := fmt.Sprintf("%d %s in a row were complete, and none failed for %v", s.wholeRow, s.noun(), (now - s.lost).Round(time.Second))
		if goesOn {
			return QueueGrows, cause
		}
		return Steady, cause
	case s.Mode != QueueGrows && rises:
		return QueueGrows, t.text()
	case s.Mode == QueueGrows && idle && rose >= calm:
		return Steady, fmt.Sprintf("cores have been idle for %v", rose.Round(time.Second))
	case s.Mode == QueueGrows && (back && rose >= calm || rose >= plateau):
		return Steady, fmt.Sprintf("times to first byte have not risen for %v", rose.Round(time.Second))
	case s.Mode == Unknown && known:
		return Steady, fmt.Sprintf("times to first byte do not rise; they are %.3g s", t.Level)
	}
	return s.Mode, ""
}

// noun returns what the scope counts: jobs or attempts.
func (s *scope) noun() string { return strings.TrimSuffix(string(s.fail), " fail") }

// cause describes the failures of the last minute.
func (s *scope) cause(t *tally) string {
	var how []string
	for o, n := range t.lost {
		var outcome fmt.Stringer = intake.Outcome(o)
		if s.fail == AttemptsFail {
			outcome = pool.Outcome(o)
		}
		if n > 0 {
			how = append(how, fmt.Sprintf("%s %d", outcome, n))
		}
	}
	bad, all := t.bad()
	return fmt.Sprintf("%d of the %d %s of the last minute failed; by outcome: %s", bad, all, s.noun(), strings.Join(how, ", "))
}

// text describes the trend and the forecast.
func (t *Trend) text() string {
	text := fmt.Sprintf("times to first byte rise by %.3g s a job; over the last %.0f jobs, in %.0f s, they rose to %.3g s",
		t.Slope, t.Jobs, t.Span, t.Level)
	if jobs, after, ok := t.deadline(); ok {
		text += fmt.Sprintf("; if they rise on, the first job fails in %.0f s, after %.0f more jobs", after, jobs)
	}
	return text
}
