package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"example.org/pilotfish/pkg/selection"
)

// access is the access log of another proxy, as CSV with a line of names, or as JSON Lines:
// time or ended, key, duration or duration_ms, and upstream, hit and priority where they are
// known (lab/README.md has the settings of HAProxy, nginx and Envoy).
type access struct {
	header string // the line of names; "" for JSON
	names  []string
}

// isHeader reports whether a line is the line of names.
func (a *access) isHeader(line []byte) bool {
	names := strings.Split(strings.TrimSpace(string(line)), ",")
	if !complete(func(name string) bool { return slices.Contains(names, name) }) {
		return false
	}
	a.header, a.names = string(line), names
	return true
}

// complete reports whether all is there that a job needs.
func complete(has func(string) bool) bool {
	return has("key") && (has("time") || has("ended")) && (has("duration") || has("duration_ms"))
}

func (a *access) decodeCSV(line []byte) (*entry, error) {
	if string(line) == a.header || len(line) == 0 {
		return nil, nil
	}
	cells, err := csv.NewReader(strings.NewReader(string(line))).Read()
	if err != nil {
		return nil, err
	}
	if len(cells) != len(a.names) {
		return nil, fmt.Errorf("%d values are not %d", len(cells), len(a.names))
	}
	fields := map[string]string{}
	for i, name := range a.names {
		fields[name] = cells[i]
	}
	return accessEntry(fields)
}

func isAccessJSON(line []byte) bool {
	fields, err := accessFields(line)
	return err == nil && complete(func(name string) bool { _, ok := fields[name]; return ok })
}

func decodeAccessJSON(line []byte) (*entry, error) {
	fields, err := accessFields(line)
	if err != nil {
		return nil, err
	}
	return accessEntry(fields)
}

func accessFields(line []byte) (map[string]string, error) {
	var values map[string]any
	if err := json.Unmarshal(object(line), &values); err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for name, v := range values {
		if v != nil {
			fields[name] = fmt.Sprint(v)
		}
	}
	return fields, nil
}

// accessEntry reads a request. "-" is unknown, as proxies write it.
func accessEntry(fields map[string]string) (*entry, error) {
	get := func(name string) string {
		if text := strings.TrimSpace(fields[name]); text != "-" {
			return text
		}
		return ""
	}
	name, scale := "duration", 1.0
	if _, ok := fields[name]; !ok {
		name, scale = "duration_ms", 1e-3
	}
	took, err := strconv.ParseFloat(get(name), 64)
	if err != nil || !(took >= 0 && took*scale <= MaxSeconds) {
		return nil, fmt.Errorf("field %s: %.40q is not a time of at least 0", name, fields[name])
	}
	took *= scale
	e := &entry{upstream: get("upstream"), job: Job{Project: Project(get("key"))}, seen: seen{answered: true, whole: true, first: took}}
	for name, at := range map[string]*time.Time{"time": &e.arrived, "ended": &e.ended} {
		if text := get(name); text != "" {
			if *at, err = instant(text); err != nil {
				return nil, fmt.Errorf("field %s: %w", name, err)
			}
		}
	}
	switch {
	case e.arrived.IsZero() && e.ended.IsZero():
		return nil, errors.New("fields time and ended: both are missing")
	case e.arrived.IsZero():
		e.arrived = e.ended.Add(-seconds(took))
	default:
		e.ended = e.arrived.Add(seconds(took))
	}
	switch strings.ToLower(get("hit")) {
	case "true", "1", "hit", "yes":
		e.hit = known(true)
	case "false", "0", "miss", "no":
		e.hit, e.seen.cold = known(false), true
	}
	if text := get("priority"); text != "" {
		p, ok := selection.ParsePriority(text)
		if !ok {
			return nil, fmt.Errorf("field priority: unknown priority %.40q: it is high or low", text)
		}
		e.job.Priority = p
	}
	if field, err := e.job.check(); err != nil {
		return nil, fmt.Errorf("field %s: %w", field, err)
	}
	return e, nil
}

func known(hit bool) *bool { return &hit }

// instant reads a time of day with its date, or seconds or milliseconds since 1970.
func instant(text string) (time.Time, error) {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n > 0 && n < 1e14 {
		if n > 1e11 {
			n /= 1000
		}
		return time.UnixMicro(int64(n * 1e6)).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, fmt.Errorf("%.40q is neither like 2026-01-05T09:00:00.123Z nor seconds since 1970", text)
	}
	return t, nil
}

// Seen is what logs say of how jobs were served.
type Seen struct {
	Upstreams int     // that are named; 0 where none is
	Hits      int     // jobs whose project was cached
	Hit       int     // jobs of which that is known
	Waits     int     // jobs of which the wait at the upstream is known
	Duration  float64 // the mean, in seconds
	Peak      int     // the most jobs that an upstream had at one time; all, where none is named
}

func see(all []entry) (s Seen) {
	upstreams := map[string]bool{}
	for i := range all {
		e := &all[i]
		upstreams[e.upstream] = true
		if e.hit != nil {
			s.Hit++
			if *e.hit {
				s.Hits++
			}
		}
		if e.seen.wait != nil {
			s.Waits++
		}
		s.Duration += e.ended.Sub(e.arrived).Seconds() / float64(len(all))
	}
	delete(upstreams, "")
	s.Upstreams = len(upstreams)
	s.Peak = peak(all)
	return s
}

// peak is the most jobs that were at one upstream at one time.
func peak(all []entry) (most int) {
	type step struct {
		at       time.Time
		more     int
		upstream string
	}
	var steps []step
	for i := range all {
		e := &all[i]
		steps = append(steps, step{e.arrived, 1, e.upstream}, step{e.ended, -1, e.upstream})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return a.at.Compare(b.at) })
	there := map[string]int{}
	for _, s := range steps {
		there[s.upstream] += s.more
		most = max(most, there[s.upstream])
	}
	return most
}
