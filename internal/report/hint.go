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

// The headers in which a response tells the load of its upstream, in the order in which
// they count: pilotfish's own, and that of ORCA (Open Request Cost Aggregation), by which
// servers tell Envoy and others their load.
//
//	X-Load: at=1763677245.123, running=12, stalled=3, stalled_high=0, cached=1, waited=0.004, fetch=1.9
//	Endpoint-Load-Metrics: TEXT cpu_utilization=0.75, named_metrics.running=12, named_metrics.stalled=3
var loadHeaders = [...]string{"X-Load", "Endpoint-Load-Metrics"}

const (
	maxHintBytes = 8 << 10
	maxHintAge   = time.Minute // an older one means that the clocks differ
	// maxUtilization bounds a share of the cores that is believed: an upstream may be
	// overloaded.
	maxUtilization = 1e6
)

// Hint reads the load of an upstream from the header or the trailer of a response that
// came at now. A header that is there twice, or is too long, or has a figure that makes no
// sense, is not believed at all, and ok is false.
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
type hintFields [hintApplication + 1]float64

const (
	hintAt = iota
	hintRunning
	hintStalled
	hintHigh
	hintCached
	hintWaited
	hintFetch
	hintCPU
	hintApplication
)

// hintNames has the place of a figure by its name, and the largest value that is accepted.
var hintNames = map[string]struct {
	figure int
	most   float64
}{
	"at":           {hintAt, math.MaxFloat64}, // in seconds since 1970 on the upstream's clock
	"running":      {hintRunning, maxCount},
	"stalled":      {hintStalled, maxCount},
	"stalled_high": {hintHigh, maxCount},                      // the part of stalled that has high priority
	"cached":       {hintCached, 1},                           // 1: the job found its project's data
	"waited":       {hintWaited, intake.MaxTimeout.Seconds()}, // by the job, in seconds
	"fetch":        {hintFetch, intake.MaxTimeout.Seconds()},  // of the project's data, in seconds

	"cpu_utilization": {hintCPU, maxUtilization}, "application_utilization": {hintApplication, maxUtilization},
}

// set takes a figure by its name, and reports whether it makes sense. A named metric of
// ORCA may have the name of a figure, or that of the metric in the settings without its
// prefix. Other names are ignored.
func (f *hintFields) set(name, text string, names *Names) bool {
	if metric, named := strings.CutPrefix(name, "named_metrics."); named {
		switch name = metric; metric {
		case baseName(names.Running):
			name = "running"
		case baseName(names.Stalled):
			name = "stalled"
		}
	}
	place, known := hintNames[name]
	if !known {
		return true
	}
	x, err := strconv.ParseFloat(text, 64)
	f[place.figure] = x
	return err == nil && x >= 0 && x <= place.most
}

// baseName is num_requests_running for vllm:num_requests_running{model_name="llama"}.
func baseName(metric string) string {
	name, _, _ := strings.Cut(metric, "{")
	name, _, _ = strings.Cut(name, " ")
	return name[strings.LastIndexByte(name, ':')+1:]
}

// read reads one line. Some servers leave the name of the form out, and older Envoys write colons.
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
		if !ok || !f.set(strings.TrimSpace(name), strings.TrimSpace(text), names) {
			return false
		}
	}
	return true
}

// hint is what the figures mean. They must tell a count or the utilization, and must not
// contradict each other.
//
// The header is written just before it is read, so a time in the future, or more than a
// minute ago, means that the two clocks differ. Then now is used, as when there is none.
func (f *hintFields) hint(now time.Time) (hint pool.Hint, ok bool) {
	utilization := f[hintApplication]
	if utilization < 0 {
		utilization = f[hintCPU]
	}
	switch {
	case f[hintRunning] < 0 && f[hintStalled] < 0 && utilization < 0:
		return hint, false
	case f[hintStalled] >= 0 && f[hintHigh] > f[hintStalled], f[hintCached] > 0 && f[hintCached] < 1:
		return hint, false
	}
	hint = pool.Hint{
		At:          now,
		Utilization: utilization,
		Cached:      f[hintCached] == 1,
		Known:       f[hintCached] >= 0,
		Waited:      seconds(f[hintWaited]),
		Fetched:     seconds(f[hintFetch]),
	}
	hint.Running[selection.Low], hint.Stalled[selection.Low] = f[hintRunning], f[hintStalled]
	if f[hintStalled] >= 0 && f[hintHigh] >= 0 {
		hint.Stalled[selection.Low], hint.Stalled[selection.High] = f[hintStalled]-f[hintHigh], f[hintHigh]
	}
	if age := float64(now.UnixNano())/1e9 - f[hintAt]; age > 0 && age <= maxHintAge.Seconds() {
		hint.At = now.Add(-seconds(age))
	}
	return hint, true
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
