package trace

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.org/pilotfish/pkg/selection"
)

// The access log of another proxy has time or ended, key, duration or duration_ms, and upstream, hit and
// priority where they are known (lab/README.md has the settings of HAProxy, nginx and Envoy).

// accessEntry reads a request. "-" is unknown, as proxies write it.
func accessEntry(fields map[string]string) (*entry, error) {
	get := func(name string) string {
		if text := strings.TrimSpace(fields[name]); text != "-" {
			return text
		}
		return ""
	}
	if _, ok := fields["key"]; !ok {
		return nil, errors.New("field key: is missing")
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
	e := &entry{upstream: get("upstream"), job: Job{Project: Project(get("key"))}, answered: true, took: took}
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
		e.arrived = e.ended.Add(-Duration(took))
	default:
		e.ended = e.arrived.Add(Duration(took))
	}
	switch strings.ToLower(get("hit")) {
	case "true", "1", "hit", "yes":
		e.hit = new(true)
	case "false", "0", "miss", "no":
		e.hit, e.cold = new(false), true
	}
	return e, e.prioritize(get("priority"))
}

// prioritize sets the priority that a log names, low if it names none.
func (e *entry) prioritize(text string) error {
	p, ok := selection.ParsePriority(text)
	if !ok && text != "" {
		return fmt.Errorf("field priority: unknown priority %.40q: it is high or low", text)
	}
	e.job.Priority = p
	return nil
}

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
	type step struct {
		at       time.Time
		more     int
		upstream string
	}
	var steps []step
	for i := range all {
		e := &all[i]
		steps = append(steps, step{e.arrived, 1, e.upstream}, step{e.ended, -1, e.upstream})
		if e.hit != nil {
			s.Hit++
			if *e.hit {
				s.Hits++
			}
		}
		if e.wait != nil {
			s.Waits++
		}
		s.Duration += e.ended.Sub(e.arrived).Seconds() / float64(len(all))
	}
	slices.SortStableFunc(steps, func(a, b step) int { return a.at.Compare(b.at) })
	there := map[string]int{}
	for _, step := range steps {
		there[step.upstream] += step.more
		s.Peak = max(s.Peak, there[step.upstream])
	}
	delete(there, "")
	s.Upstreams = len(there)
	return s
}
