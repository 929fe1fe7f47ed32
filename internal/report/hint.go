package report

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

// loadHeaders are the response headers in which an upstream reports its load, in order of preference:
// pilotfish's own, and that of ORCA (Open Request Cost Aggregation), which Envoy and gRPC also use.
//
//	X-Load: at=1763677245.123, running=12, stalled=3, stalled_high=0, busy=12, cached=1, waited=0.004, fetch=1.9
//	Endpoint-Load-Metrics: TEXT cpu_utilization=0.75, named_metrics.running=12, named_metrics.stalled=3, named_metrics.busy=12
var loadHeaders = [...]string{"X-Load", "Endpoint-Load-Metrics"}

const (
	maxHintBytes = 8 << 10
	maxHintAge   = time.Minute // an older time means that the clocks differ
	// maxUtilization is the maximum share of the cores that is accepted. It is far above 1, because
	// an overloaded upstream can report more than 1.
	maxUtilization = 1e6
)

// errNoLoad is the error of a header without a load header.
var errNoLoad = errors.New("the response has no load header")

// HintError is an invalid load header.
type HintError struct {
	header string
	err    error
}

func (e *HintError) Error() string { return e.header + ": " + e.err.Error() }

// Hint parses an upstream's load from the header or trailer of a response that was received at now. The error is a
// *HintError if the load header is invalid.
func (s Settings) Hint(h http.Header, now time.Time) (hint pool.Hint, err error) {
	for _, header := range loadHeaders {
		lines := h[header]
		if len(lines) == 0 {
			continue
		}
		f := hintFields{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1}
		switch {
		case len(lines) > 1:
			err = errors.New("it is there more than once")
		case len(lines[0]) > maxHintBytes:
			err = fmt.Errorf("it is longer than %d bytes", maxHintBytes)
		default:
			err = f.read(lines[0], &s.Names)
		}
		if err == nil {
			hint, err = f.hint(now)
		}
		if err != nil {
			err = &HintError{header, err}
		}
		return hint, err
	}
	return hint, errNoLoad
}

// hintFields are the values of a load header; -1 means missing.
type hintFields struct{ at, running, stalled, high, busy, cached, waited, fetch, cpu, application float64 }

// field returns where to store the value with this name, and the maximum value that is accepted. A named
// metric of ORCA has the name of a field, or that of the metric in the settings without
// its prefix. For any other name, place is nil.
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
	case "stalled_high": // the high-priority part of stalled
		return &f.high, maxCount
	case "busy": // cores that run a joblet
		return &f.busy, maxCount
	case "cached": // 1: the project's data was cached
		return &f.cached, 1
	case "waited": // how long the job waited, in seconds
		return &f.waited, intake.MaxTimeout.Seconds()
	case "fetch": // how long fetching the project's data took, in seconds
		return &f.fetch, intake.MaxTimeout.Seconds()
	case "cpu_utilization":
		return &f.cpu, maxUtilization
	case "application_utilization":
		return &f.application, maxUtilization
	}
	return nil, 0
}

// baseName returns num_requests_running for vllm:num_requests_running{model_name="llama"}.
func baseName(metric string) string {
	name, _, _ := strings.Cut(metric, "{")
	name, _, _ = strings.Cut(name, " ")
	return name[strings.LastIndexByte(name, ':')+1:]
}

// read parses the value of a load header. The word TEXT is optional, because
// some servers omit it. Older versions of Envoy write colons instead of equals signs.
func (f *hintFields) read(line string, names *Names) error {
	line = strings.TrimSpace(line)
	if format, rest, ok := strings.Cut(line, " "); ok && strings.EqualFold(format, "TEXT") {
		line = rest
	}
	for pair := range strings.SplitSeq(line, ",") {
		name, text, ok := strings.Cut(pair, "=")
		if !ok {
			name, text, ok = strings.Cut(pair, ":")
		}
		if !ok {
			return fmt.Errorf("%s is not key=value", settings.Quote(pair))
		}
		place, most := f.field(strings.TrimSpace(name), names)
		if place == nil {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || !(x >= 0 && x <= most) {
			return fmt.Errorf("%s: want a number from 0 to %g", settings.Quote(pair), most)
		}
		*place = x
	}
	return nil
}

// hint converts the values to a Hint. It fails if they contain neither a count nor the
// utilization, or contradict each other.
//
// The header is written just before it is read. A time in the future, or more than a
// minute ago, means that the two clocks differ. Then now is used, as without a time.
func (f *hintFields) hint(now time.Time) (hint pool.Hint, err error) {
	utilization := f.application
	if utilization < 0 {
		utilization = f.cpu
	}
	switch {
	case f.running < 0 && f.stalled < 0 && utilization < 0:
		return hint, errors.New("it has neither running nor stalled nor a utilization")
	case f.stalled >= 0 && f.high > f.stalled:
		return hint, errors.New("stalled_high is more than stalled")
	case f.cached > 0 && f.cached < 1:
		return hint, errors.New("cached is neither 0 nor 1")
	}
	hint = pool.Hint{
		At:          now,
		Utilization: utilization,
		CoresBusy:   f.busy,
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
	return hint, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
