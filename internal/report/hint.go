package report

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

const (
	maxHintBytes = 1024
	maxHintAge   = time.Minute // older than that, the clocks are at fault
)

// ParseHint reads the load that an upstream tells in the header X-Load of an
// answer that began at now:
//
//	X-Load: at=1763677245.123, running=12, stalled=3, stalled_high=0, cached=1, waited=0.004, fetch=1.9
//
// running and stalled must be there; stalled_high is the part of stalled that
// has high priority, and without it all is low, as is all of running. The
// rest is optional, in any order; the last of a kind counts and unknown keys
// are ignored. One value that makes no sense (not a number, negative, beyond
// reason) discredits them all, and ok is false.
//
// at is in seconds since 1970 on the upstream's clock. The header is written
// just before it is read: a time in the future, or more than a minute ago,
// tells of two clocks that differ, and now is used, as when there is none.
func ParseHint(h http.Header, now time.Time) (hint pool.Hint, ok bool) {
	lines := h["X-Load"]
	if len(lines) != 1 || len(lines[0]) > maxHintBytes {
		return pool.Hint{}, false
	}
	t, ok := parseTold(lines[0])
	if !ok || t.running < 0 || t.stalled < 0 || t.high > t.stalled || t.cached > 0 && t.cached < 1 {
		return pool.Hint{}, false
	}
	high := max(t.high, 0)
	hint = pool.Hint{
		At:      now,
		Cached:  t.cached == 1,
		Known:   t.cached >= 0,
		Waited:  seconds(t.waited),
		Fetched: seconds(t.fetch),
	}
	hint.Running[selection.Low] = t.running
	hint.Stalled[selection.Low] = t.stalled - high
	hint.Stalled[selection.High] = high
	if age := float64(now.UnixNano())/1e9 - t.at; age > 0 && age <= maxHintAge.Seconds() {
		hint.At = now.Add(-seconds(age))
	}
	return hint, true
}

// told is the numbers of a hint as they stand there; negative is not told.
type told struct{ at, running, stalled, high, cached, waited, fetch float64 }

func parseTold(line string) (t told, ok bool) {
	t = told{-1, -1, -1, -1, -1, -1, -1}
	for pair := range strings.SplitSeq(line, ",") {
		key, text, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok {
			return t, false
		}
		number, most := t.field(key)
		if number == nil {
			continue
		}
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x >= 0 && x <= most) {
			return t, false
		}
		*number = x
	}
	return t, true
}

// field returns the number behind a key, and the most that is believed of it.
func (t *told) field(key string) (number *float64, most float64) {
	switch key {
	case "at":
		return &t.at, math.MaxFloat64
	case "running":
		return &t.running, maxCount
	case "stalled":
		return &t.stalled, maxCount
	case "stalled_high":
		return &t.high, maxCount
	case "cached":
		return &t.cached, 1
	case "waited":
		return &t.waited, intake.MaxTimeout.Seconds()
	case "fetch":
		return &t.fetch, intake.MaxTimeout.Seconds()
	}
	return nil, 0
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
