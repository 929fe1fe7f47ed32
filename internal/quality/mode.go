package quality

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.org/pilotfish/internal/intake"
)

// Mode is how submitters are served (N. J. Turner's thesis, 4.5).
type Mode string

// The modes, a closed set.
const (
	// Unknown: too few jobs ended to tell.
	Unknown Mode = "unknown"
	// Flat: each job is served like the one before.
	Flat Mode = "flat"
	// Growing: jobs are complete, and each waits longer for its first byte than the
	// one before: more work comes than is done.
	Growing Mode = "growing"
	// Losing: submitters get errors, or their results in part or not at all.
	Losing Mode = "losing"
)

// Number is that of the thesis; 0 is unknown, or none.
func (m Mode) Number() int { return max(0, slices.Index([]Mode{Unknown, Flat, Growing, Losing}, m)) }

// What it takes to change the mode. Each is entered on more than it is left on, so
// that it does not flap.
const (
	// A rise begins at certain standard deviations, and is over below doubtful.
	certain, doubtful = 4.0, 1.0
	// It begins where it makes the share muchRise of what it leads to, or where times rise
	// by steep seconds a second: as much more work comes than is done. Less than leastRise,
	// in seconds, nobody notices.
	muchRise  = 0.5
	steep     = 0.03
	leastRise = 0.05
	// It is seen over at least this time.
	riseSpan = 10 * time.Second
	// It is over when it was not seen for the first time, and times are on their way
	// back; or for the second, wherever they are.
	calm    = 30 * time.Second
	plateau = 5 * time.Minute

	// Jobs are being lost when manyLost failed or did not come whole in a row, or within a
	// minute if they are the share lostShare of that minute's jobs.
	manyLost  = 3
	lostShare = 0.01
	// That is over after manyWhole complete jobs in a row, and the time whole without a loss.
	manyWhole = 8
	whole     = 10 * time.Second
)

// scope is what is known of the fleet or of one upstream: its mode, and what led to it.
type scope struct {
	Status // without windows
	follow trend
	minute ring[tally] // how jobs ended
	data   ring[Finds] // of the same minute

	ended    time.Duration // when a job last ended
	lost     time.Duration // when one was last lost
	inRow    int           // jobs lost one after another
	wholeRow int           // jobs complete one after another

	rising     time.Duration // when a rise was last seen
	grew       bool          // times rose when jobs began to be lost
	base, peak float64       // the time to first byte when the rise began, and its highest since
}

func newScope(now time.Time) *scope {
	return &scope{minute: make(ring[tally], spans[0]), data: make(ring[Finds], spans[0]), Status: Status{Mode: Unknown, Since: now}}
}

// observe counts a job that ended.
func (s *scope) observe(now time.Duration, r result, o intake.Outcome) {
	s.minute.at(now).add(r, o)
	switch r {
	case limited:
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

// tally is what ended in the last minute.
func (s *scope) tally(now time.Duration) (t tally) {
	s.minute.last(now, spans[0], t.merge)
	return t
}

// next is the mode at an instant, and the reason if it has changed.
func (s *scope) next(now time.Duration) (Mode, string) {
	if s.Mode != Unknown && now-s.ended > maxAge {
		return Unknown, fmt.Sprintf("no job ended for %v", maxAge)
	}
	minute := s.tally(now)
	bad, jobs := minute.bad()
	s.follow.pace(jobs)
	many := s.inRow >= manyLost || bad >= manyLost && float64(bad) >= lostShare*float64(jobs)
	lately := now-s.lost < whole
	switch {
	case s.Mode == Losing && (s.wholeRow < manyWhole || lately):
		return Losing, ""
	case s.Mode == Losing:
		s.follow.restart(s.lost) // what was before says nothing of the jobs after
	case many && lately:
		s.grew = s.Mode == Growing
		return Losing, minute.cause()
	}
	return s.judge(now)
}

// judge is the mode by the trend, as far as there is one.
func (s *scope) judge(now time.Duration) (Mode, string) {
	var known bool
	s.Trend, known = s.follow.at(now)
	t := &s.Trend
	enough := max(min(muchRise*t.Level, steep*t.Span), leastRise)
	rises := t.certainty >= certain && t.Rise() >= enough && t.Span+t.Level >= riseSpan.Seconds()
	calmBefore := s.Mode == Unknown || s.Mode == Flat
	if calmBefore {
		s.base, s.peak = t.Level-t.Rise(), t.Level
	}
	s.peak = max(s.peak, t.Level)
	back := t.Level <= (s.base+s.peak)/2 // half-way to where times rose from
	still := !calmBefore && t.certainty >= doubtful && t.Rise() >= leastRise
	goesOn := still || s.Mode == Losing && s.grew && !(known && back)
	if rises || goesOn {
		s.rising = now
	}
	rose := now - s.rising
	switch {
	case s.Mode == Losing:
		cause := fmt.Sprintf("%d jobs in a row were complete, and none was lost for %v", s.wholeRow, (now - s.lost).Round(time.Second))
		if goesOn {
			return Growing, cause
		}
		return Flat, cause
	case s.Mode != Growing && rises:
		return Growing, t.text()
	case s.Mode == Growing && (back && rose >= calm || rose >= plateau):
		return Flat, fmt.Sprintf("times to first byte have not risen for %v", rose.Round(time.Second))
	case s.Mode == Unknown && known:
		return Flat, fmt.Sprintf("times to first byte do not rise; they are %.3g s", t.Level)
	}
	return s.Mode, ""
}

// cause says what is lost.
func (t *tally) cause() string {
	var how []string
	for o, n := range t.lost {
		if n > 0 {
			how = append(how, fmt.Sprintf("%s %d", intake.Outcome(o), n))
		}
	}
	_, all := t.bad()
	return fmt.Sprintf("of the %d jobs of the last minute %d failed, %d came in part and %d not at all; by outcome: %s", all,
		t.results[failed], t.results[partial], t.results[absent], strings.Join(how, ", "))
}

// text says how times rise, and what comes of it.
func (t *Trend) text() string {
	text := fmt.Sprintf("times to first byte rise by %.3g s a job; over the last %.0f jobs, in %.0f s, they rose to %.3g s",
		t.Slope, t.Jobs, t.Span, t.Level)
	if jobs, after, ok := t.deadline(); ok {
		text += fmt.Sprintf("; at this slope the first deadline passes in %.0f jobs, %.0f s", jobs, after)
	}
	return text
}
