package trace

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.org/pilotfish/pkg/selection"
)

// dialects are the field names of other programs' JSON: a name that identifies the program, and pairs of our name
// and theirs.
var dialects = []struct {
	mark  string
	names [][2]string
}{
	{"startutc", [][2]string{{"duration_ns", "duration"}, {"upstream", "serviceaddr"}}},        // Traefik
	{"upstream_host", [][2]string{{"duration_ms", "duration"}, {"upstream", "upstream_host"}}}, // Istio
	{"request_time", [][2]string{{"duration", "request_time"}, {"upstream", "upstream_addr"}, {"hit", "upstream_cache_status"}, {"ended", "time"}}},
	{"rt", [][2]string{{"duration", "rt"}, {"upstream", "upstream_addr"}}}, // a usual name in nginx
	{"project", [][2]string{{"key", "project"}}},
	{"project_id", [][2]string{{"key", "project_id"}}},
}

// units are the names of fields with a duration, and their units in seconds.
var units = []unit{{"duration", 1}, {"duration_ms", 1e-3}, {"duration_us", 1e-6}, {"duration_ns", 1e-9}, {"duration_s", 1}}

type unit struct {
	name    string
	seconds float64
}

// starts and ends are the names of fields with the time when the request arrived, and when its response ended.
var starts = []string{"startutc", "start_time", "time"}

var ends = []string{"ended", "ts", "timestamp", "@timestamp", "msec", "time_iso8601", "time_local"}

func (f fields) has(name string) bool { _, ok := f[name]; return ok }

// first returns the first of the names that has a value.
func (f fields) first(names ...string) string {
	if i := slices.IndexFunc(names, func(name string) bool { return f.value(name) != "" }); i >= 0 {
		return names[i]
	}
	return ""
}

// renamed replaces a proxy's names by ours, unless the line already has ours.
func (f fields) renamed() fields {
	for _, d := range dialects {
		if !f.has(d.mark) {
			continue
		}
		for _, pair := range d.names {
			if value, ok := f[pair[1]]; ok && !f.has(pair[0]) {
				delete(f, pair[1])
				f[pair[0]] = value
			}
		}
	}
	return f
}

// unit returns the index in units of the field with the duration; -1 if there is none.
func (f fields) unit() int {
	return slices.IndexFunc(units, func(u unit) bool { return f.has(u.name) })
}

// start returns the name of the field with the time.
func (f fields) start() string { return f.first(slices.Concat(starts, ends)...) }

// value returns a field's value, "" if it is unknown: "-", null, or HAProxy's names in angle brackets. Of several
// attempts, it returns the last one's.
func (f fields) value(name string) string {
	text := strings.TrimSpace(f[name])
	if name == "upstream" || name == "hit" || strings.HasPrefix(name, "duration") { // nginx separates attempts by spaces
		text = text[strings.LastIndexByte(text, ' ')+1:]
	}
	switch {
	case text == "-", text == `\N`, strings.EqualFold(text, "null"), strings.EqualFold(text, "nan"), name == "upstream" && strings.HasPrefix(text, "<"):
		return ""
	case name == "upstream":
		if _, after, ok := strings.Cut(text, "://"); ok {
			text = strings.TrimSuffix(after, "/")
		}
	}
	return text
}

// accessEntry reads a request of another proxy (lab/README.md lists the names, and settings for HAProxy, nginx and Envoy).
// A request without a key still counts as load.
func accessEntry(f fields) (*entry, error) {
	f.renamed()
	i := f.unit()
	if i < 0 {
		return nil, errors.New("field duration: is missing")
	}
	name := units[i].name
	took, err := parseDuration(f.value(name), units[i].seconds)
	if err != nil || !(took >= 0 && took <= MaxSeconds) {
		return nil, fmt.Errorf("field %s: %.40q is not a time of at least 0", name, f[name])
	}
	e := &entry{
		id: f.value("id"), session: f.value("session"), upstream: f.value("upstream"), job: Job{Project: Project(f.value("key"))}, answered: true, took: took, most: took,
		partial: strings.HasPrefix(f.value(name), "+"),
	}
	at := f.start()
	if at == "" {
		return nil, errors.New("fields time and ended: both are missing")
	}
	if e.logged, err = instant(f.value(at)); err != nil {
		return nil, fmt.Errorf("field %s: %w", at, err)
	}
	number, err := strconv.ParseInt(f.value(at), 10, 64)
	e.whole = !strings.ContainsAny(f.value(at), ".,") && (err != nil || number <= maxWhole)
	if e.arrived, e.ended = e.logged, e.logged.Add(Duration(took)); slices.Contains(ends, at) {
		e.arrived, e.ended = e.logged.Add(-Duration(took)), e.logged
	}
	switch strings.ToLower(f.value("hit")) {
	case "true", "1", "hit", "yes", "stale", "updating", "revalidated":
		e.known = true
	case "false", "0", "miss", "no", "expired":
		e.known, e.cold = true, true
	}
	return e, e.prioritize(f.value("priority"))
}

// parseDuration reads a number of units, also with a decimal comma as in spreadsheets or with HAProxy's leading plus,
// or a duration with its own unit.
func parseDuration(text string, unit float64) (float64, error) {
	n, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
	if err != nil {
		d, err := time.ParseDuration(text)
		return d.Seconds(), err
	}
	return n * unit, nil
}

// sumOf adds numbers. If one is unknown, which is negative, the sum is -1.
func sumOf(texts ...string) string {
	sum := 0.0
	for _, text := range texts {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n < 0 {
			return "-1"
		}
		sum += n
	}
	return strconv.FormatFloat(sum, 'g', -1, 64)
}

// maxWhole is the largest number that counts as seconds since 1970, in the year 5138; a larger one is in a smaller unit.
const maxWhole = 1e11

// layouts are the accepted formats of a time, after instant has normalised "T" and the offset.
var layouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02T15:04:05Z07",
	"02/Jan/2006:15:04:05Z0700", "02/Jan/2006:15:04:05", "02/Jan/2006:15:04:05Z07:00",
}

var offset = regexp.MustCompile(`(?: ([-+]\d\d:?\d\d))?(?: ?(?:UTC|GMT))?$`)

// instant reads a time of day with its date, or seconds, milliseconds, microseconds or nanoseconds since 1970. Without an
// offset it is UTC.
func instant(text string) (time.Time, error) {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 && n < 1e19 {
		for n > maxWhole {
			n /= 1000
		}
		return time.UnixMicro(int64(n*1e6 + 0.5)).UTC(), nil
	}
	plain := offset.ReplaceAllString(text, "$1")
	if len(plain) > 10 && plain[10] == ' ' {
		plain = plain[:10] + "T" + plain[11:]
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, plain); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%.40q is neither like 2026-01-05T09:00:00.123Z nor seconds since 1970", text)
}

// prioritize sets the priority of a log; no priority is low.
func (e *entry) prioritize(text string) error {
	p, ok := selection.ParsePriority(text)
	if !ok && text != "" {
		return fmt.Errorf("field priority: unknown priority %.40q: it is high or low", text)
	}
	e.job.Priority = p
	return nil
}
