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

// The response headers with which an upstream reports its load, in order of preference:
// pilotfish's own, and that of ORCA (Open Request Cost Aggregation), which Envoy and other
// proxies use, too.
//
//	X-Load: at=1763677245.123, running=12, stalled=3, stalled_high=0, cached=1, waited=0.004, fetch=1.9
//	Endpoint-Load-Metrics: TEXT cpu_utilization=0.75, named_metrics.running=12, named_metrics.stalled=3
var loadHeaders = [...]string{"X-Load", "Endpoint-Load-Metrics"}

const (
	maxHintBytes = 8 << 10
	maxHintAge   = time.Minute // an older hint means that the clocks differ
	// maxUtilization bounds a share of the cores that is believed: an upstream may be
	// overloaded.
	maxUtilization = 1e6
)

// Hint parses an upstream's load from the header or the trailer of a response that was
// received at now. ok is false if there is none, or if the header is duplicate, too long or
// contains an invalid value.
func (s Settings) Hint(h http.Header, now time.Time) (hint pool.Hint, ok bool) {
	for _, header := range loadHeaders {
		if lines := h[header]; len(lines) == 1 && len(lines[0]) <= maxHintBytes {
			f := hintFields{-1, -1, -1, -1, -1, -1, -1, -1, -1}
			if !f.read(lines[0], &s.Names) {
				return hint, false
			}
			return f.hint(now)
		} else if len(lines) > 0 {
			return hint, false
		}
	}
	return hint, false
}

// hintFields are the figures of a hint as they are written; -1 is not there.
type hintFields struct{ at, running, stalled, high, cached, waited, fetch, cpu, application float64 }

// field is the place of a figure by its name, and the largest value that is accepted. A named
// metric of ORCA may have the name of a figure, or that of the metric in the settings without
// its prefix. Other names have no place.
func (f *hintFields) field(name string, names *Names) (place *float64, most float64) {
	name, named := strings.CutPrefix(name, "named_metrics.")
	switch {
	case name == "running", named && name == baseName(names.Running):
		return &f.running, maxCount
	case name == "stalled", named && name == baseName(names.Stalled):
		return &f.stalled, maxCount
	}
	switch name {
	case "at": // in seconds since 1970 on the upstream's clock
		return &f.at, math.MaxFloat64
	case "stalled_high": // the part of stalled that has high priority
		return &f.high, maxCount
	case "cached": // 1: the job found its project's data
		return &f.cached, 1
	case "waited": // by the job, in seconds
		return &f.waited, intake.MaxTimeout.Seconds()
	case "fetch": // of the project's data, in seconds
		return &f.fetch, intake.MaxTimeout.Seconds()
	case "cpu_utilization":
		return &f.cpu, maxUtilization
	case "application_utilization":
		return &f.application, maxUtilization
	}
	return nil, 0
}

// baseName is num_requests_running for vllm:num_requests_running{model_name="llama"}.
func baseName(metric string) string {
	name, _, _ := strings.Cut(metric, "{")
	name, _, _ = strings.Cut(name, " ")
	return name[strings.LastIndexByte(name, ':')+1:]
}

// read reads one line, and reports whether what it reads makes sense. Some servers leave the name
// of the form out, and older Envoys write colons.
func (f *hintFields) read(line string, names *Names) bool {
	line = strings.TrimSpace(line)
	if form, rest, ok := strings.Cut(line, " "); ok && strings.EqualFold(form, "TEXT") {
		line = rest
	}
	for pair := range strings.SplitSeq(line, ",") {
		name, text, ok := strings.Cut(pair, "=")
		if !ok {
			name, text, ok = strings.Cut(pair, ":")
		}
		if !ok {
			return false
		}
		place, most := f.field(strings.TrimSpace(name), names)
		if place == nil {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || !(x >= 0 && x <= most) {
			return false
		}
		*place = x
	}
	return true
}

// hint is what the figures mean. They must tell a count or the utilization, and must not
// contradict each other.
//
// The header is written just before it is read, so a time in the future, or more than a
// minute ago, means that the two clocks differ. Then now is used, as when there is none.
func (f *hintFields) hint(now time.Time) (hint pool.Hint, ok bool) {
	utilization := f.application
	if utilization < 0 {
		utilization = f.cpu
	}
	switch {
	case f.running < 0 && f.stalled < 0 && utilization < 0:
		return hint, false
	case f.stalled >= 0 && f.high > f.stalled, f.cached > 0 && f.cached < 1:
		return hint, false
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
		hint.ByPriority = true
	}
	if age := float64(now.UnixNano())/1e9 - f.at; age > 0 && age <= maxHintAge.Seconds() {
		hint.At = now.Add(-seconds(age))
	}
	return hint, true
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
