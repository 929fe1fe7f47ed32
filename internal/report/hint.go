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
	maxHintAge   = time.Minute // an older one means that the clocks differ
)

// Hint reads the load of an upstream from the header or the trailer of a response,
// which came at now: from X-Load, or else from a load report in the form of ORCA.
func (s Settings) Hint(h http.Header, now time.Time) (pool.Hint, bool) {
	if len(h["X-Load"]) > 0 {
		return parseHint(h, now)
	}
	if len(h[orcaHeader]) > 0 || len(h[orcaBinaryHeader]) > 0 {
		return s.ORCA.read(h, now)
	}
	return pool.Hint{}, false
}

// parseHint reads the load of an upstream from the header X-Load of a response
// that began at now:
//
//	X-Load: at=1763677245.123, running=12, stalled=3, stalled_high=0, cached=1, waited=0.004, fetch=1.9
//
// running and stalled are required, the rest is optional, and the order is free.
// stalled_high is the part of stalled that has high priority; without it all of
// stalled is low, and all of running always is. Of two values of one key the
// last counts, and unknown keys are ignored. If one value is not a number, is
// negative or is too large, no value of the header is used, and ok is false.
//
// at is in seconds since 1970 on the upstream's clock. The header is written
// just before it is read, so a time in the future, or more than a minute ago,
// means that the two clocks differ. Then now is used, as when there is no at.
func parseHint(h http.Header, now time.Time) (hint pool.Hint, ok bool) {
	lines := h["X-Load"]
	if len(lines) != 1 || len(lines[0]) > maxHintBytes {
		return pool.Hint{}, false
	}
	f, ok := parseHintFields(lines[0])
	if !ok || f.running < 0 || f.stalled < 0 {
		return pool.Hint{}, false
	}
	if hint, ok = f.hint(now, -1); !ok {
		return pool.Hint{}, false
	}
	if age := float64(now.UnixNano())/1e9 - f.at; age > 0 && age <= maxHintAge.Seconds() {
		hint.At = now.Add(-seconds(age))
	}
	return hint, true
}

// hintFields are the numbers of a hint as they are written; -1 is not there.
type hintFields struct{ at, running, stalled, high, cached, waited, fetch float64 }

func noFields() hintFields { return hintFields{-1, -1, -1, -1, -1, -1, -1} }

// hint is what the fields and the utilization mean. ok is false when they
// contradict each other.
func (f hintFields) hint(now time.Time, utilization float64) (hint pool.Hint, ok bool) {
	if f.stalled >= 0 && f.high > f.stalled || f.cached > 0 && f.cached < 1 {
		return pool.Hint{}, false
	}
	hint = pool.Hint{
		At:          now,
		Utilization: utilization,
		Cached:      f.cached == 1,
		Known:       f.cached >= 0,
		Waited:      seconds(f.waited),
		Fetched:     seconds(f.fetch),
	}
	hint.Running[selection.Low], hint.Stalled[selection.Low] = f.running, f.stalled
	if f.stalled >= 0 && f.high >= 0 {
		hint.Stalled[selection.Low], hint.Stalled[selection.High] = f.stalled-f.high, f.high
	}
	return hint, true
}

func parseHintFields(line string) (f hintFields, ok bool) {
	f = noFields()
	for pair := range strings.SplitSeq(line, ",") {
		key, text, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok {
			return f, false
		}
		number, most := f.field(key)
		if number == nil {
			continue
		}
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x >= 0 && x <= most) {
			return f, false
		}
		*number = x
	}
	return f, true
}

// field returns the number of a key and the largest value that is accepted; nil
// is for an unknown key.
func (f *hintFields) field(key string) (number *float64, most float64) {
	switch key {
	case "at":
		return &f.at, math.MaxFloat64
	case "running":
		return &f.running, maxCount
	case "stalled":
		return &f.stalled, maxCount
	case "stalled_high":
		return &f.high, maxCount
	case "cached":
		return &f.cached, 1
	case "waited":
		return &f.waited, intake.MaxTimeout.Seconds()
	case "fetch":
		return &f.fetch, intake.MaxTimeout.Seconds()
	}
	return nil, 0
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
