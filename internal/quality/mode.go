package quality

import (
	"fmt"
	"strings"
	"time"

	"example.org/pilotfish/internal/intake"
)

// Mode is how submitters are served (N. J. Turner's thesis, 4.5).
type Mode uint8

// The modes, a closed set. Their numbers are those of the thesis.
const (
	// Unknown: too few jobs ended to tell.
	Unknown Mode = iota
	// Flat: each job is served like the one before.
	Flat
	// Growing: jobs are complete, and each waits longer for its first byte than the
	// one before: more work comes than is done.
	Growing
	// Losing: submitters get their results in part, or not at all.
	Losing

	// Modes is how many there are.
	Modes = int(Losing) + 1
)

// String returns the mode's word.
func (m Mode) String() string { return [Modes]string{"unknown", "flat", "growing", "losing"}[m] }

// MarshalText is String.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

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

	// Jobs are being lost when manyLost were lost in a row, or within a minute if they are
	// the share lostShare of that minute's jobs.
	manyLost  = 3
	lostShare = 0.01
	// That is over after manyWhole complete jobs in a row, and the time whole without a loss.
	manyWhole = 8
	whole     = 10 * time.Second
)

// state is the mode of the fleet or of one upstream, and what led to it.
type state struct {
	mode  Mode
	since time.Duration
	trend Trend // as last judged

	heard    time.Duration // when a job last ended
	lost     time.Duration // when one was last lost
	rising   time.Duration // when a rise was last seen
	grew     bool          // times rose when jobs began to be lost
	base     float64       // the time to first byte when the rise began, in seconds
	peak     float64       // and its highest since
	inRow    int           // jobs lost one after another
	wholeRow int           // jobs complete one after another
}

// note counts a job that ended.
func (s *state) note(now time.Duration, j *Job) {
	s.heard = now
	if j.Completeness == intake.Complete {
		s.inRow = 0
		s.wholeRow++
		return
	}
	s.lost = now
	s.inRow++
	s.wholeRow = 0
}

// next is the mode at an instant, and the reason if it has changed. minute is what was
// counted in the last minute.
func (s *state) next(now time.Duration, t *trend, minute *slot) (Mode, string) {
	if s.mode != Unknown && now-s.heard > maxAge {
		return Unknown, fmt.Sprintf("no job ended for %v", maxAge)
	}
	jobs := minute.jobs()
	lost := jobs - minute.counted[intake.Complete]
	if s.mode == Losing {
		if s.wholeRow < manyWhole || now-s.lost < whole {
			return Losing, ""
		}
		t.restart(s.lost) // what was before says nothing of the jobs after
	} else if s.inRow >= manyLost || lost >= manyLost && float64(lost) >= lostShare*float64(jobs) {
		if now-s.lost < whole {
			s.grew = s.mode == Growing
			return Losing, lossCause(minute)
		}
	}
	judged, ok := t.at(now)
	s.trend = judged
	if !ok {
		return s.undecided(now)
	}
	return s.judge(now)
}

// undecided is the mode without a trend.
func (s *state) undecided(now time.Duration) (Mode, string) {
	switch {
	case s.mode == Losing && s.grew:
		s.rising = now // it is taken to go on, until it is seen not to
		return Growing, s.wholeCause(now)
	case s.mode == Losing:
		return Flat, s.wholeCause(now)
	case s.mode == Growing && now-s.rising >= calm:
		return Flat, fmt.Sprintf("too few jobs ended for %v to see a rise", calm)
	}
	return s.mode, ""
}

// judge is the mode by the trend.
func (s *state) judge(now time.Duration) (Mode, string) {
	t := &s.trend
	rises := t.certainty >= certain && t.Rise() >= max(min(muchRise*t.Level, steep*t.Span), leastRise) && t.Span+t.Level >= riseSpan.Seconds()
	still := t.certainty >= doubtful && t.Rise() >= leastRise
	if s.mode < Growing {
		s.base, s.peak = t.Level-t.Rise(), t.Level
	}
	s.peak = max(s.peak, t.Level)
	goesOn := still && s.mode >= Growing || s.mode == Losing && s.grew && !s.back()
	if rises || goesOn {
		s.rising = now
	}
	switch {
	case s.mode == Losing && goesOn:
		return Growing, s.wholeCause(now)
	case s.mode == Losing:
		return Flat, s.wholeCause(now)
	case s.mode != Growing && rises:
		return Growing, t.text()
	case s.mode == Growing && s.settled(now):
		return Flat, fmt.Sprintf("times to first byte have not risen for %v; they are %s", now-s.rising, inSeconds(t.Level))
	case s.mode == Unknown:
		return Flat, fmt.Sprintf("times to first byte do not rise; they are %s", inSeconds(t.Level))
	}
	return s.mode, ""
}

// settled reports whether a rise is over.
func (s *state) settled(now time.Duration) bool {
	return s.back() && now-s.rising >= calm || now-s.rising >= plateau
}

// back reports whether times are half-way back to where they rose from.
func (s *state) back() bool { return s.trend.Level <= (s.base+s.peak)/2 }

// lossCause says what is lost.
func lossCause(minute *slot) string {
	var how []string
	for o, n := range minute.lost {
		if n > 0 {
			how = append(how, fmt.Sprintf("%s %d", intake.Outcome(o), n))
		}
	}
	return fmt.Sprintf("of the %d jobs of the last minute %d came in part and %d not at all; by outcome: %s", minute.jobs(),
		minute.counted[intake.Partial], minute.counted[intake.Absent], strings.Join(how, ", "))
}

func (s *state) wholeCause(now time.Duration) string {
	return fmt.Sprintf("%d jobs in a row were complete, and none was lost for %v", s.wholeRow, (now - s.lost).Round(time.Second))
}

// text says how times rise, and what comes of it.
func (t *Trend) text() string {
	text := fmt.Sprintf("times to first byte rise by %s a job; over the last %.0f jobs, in %.0f s, they rose to %s",
		inSeconds(t.Slope), t.Jobs, t.Span, inSeconds(t.Level))
	if jobs, after, ok := t.deadline(); ok {
		text += fmt.Sprintf("; at this slope the first deadline passes in %.0f jobs, %.0f s", jobs, after)
	}
	return text
}

// deadline is in how many jobs, and how many seconds, the time to first byte will
// reach the shortest bound of a job; ok is false if it will not.
func (t *Trend) deadline() (jobs, after float64, ok bool) {
	if t.Bound <= 0 || t.Slope <= 0 {
		return 0, 0, false
	}
	jobs = max(0, t.Bound-t.Level) / t.Slope
	return jobs, jobs * t.Span / max(t.Jobs-1, 1), true
}

func inSeconds(s float64) string { return fmt.Sprintf("%.3g s", s) }
