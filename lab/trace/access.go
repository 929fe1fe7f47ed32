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

// accessEntry reads a request of another proxy. It has time or ended, key, duration or duration_ms, and upstream, hit and
// priority where they are known (lab/README.md has the settings of HAProxy, nginx and Envoy). "-" is unknown, as
// proxies write it, and so is what HAProxy writes in angle brackets. Of several attempts the last counts.
func accessEntry(fields map[string]string) (*entry, error) {
	get := func(name string) string {
		text := strings.TrimSpace(fields[name])
		if name == "upstream" || name == "hit" || strings.HasPrefix(name, "duration") { // nginx has spaces between attempts
			text = text[strings.LastIndexByte(text, ' ')+1:]
		}
		if text == "-" || name == "upstream" && strings.HasPrefix(text, "<") {
			return ""
		}
		return text
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
	e := &entry{upstream: get("upstream"), job: Job{Project: Project(get("key"))}, answered: true, took: took, most: took}
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
		e.known = true
	case "false", "0", "miss", "no":
		e.known, e.cold = true, true
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
	Hits, Hit int     // jobs whose project was cached, of those of which that is known
	Duration  float64 // the mean of low jobs after the first tenth of the time, in seconds

	// Estimate adds how many jobs an upstream runs at one time, the mean wait, how many jobs cost what others do,
	// and the time of a fetch, if it had to be assumed.
	Cores       int
	Wait, Fetch float64
	Unlike      int
}

// see also takes jobs for not answered that reached no upstream, if any is named, and for low, if none is low.
func see(all []entry) (s Seen) {
	none := !slices.ContainsFunc(all, func(e entry) bool { return e.job.Priority == selection.Low })
	upstreams, low := map[string]bool{}, 0.0
	for i := range all {
		upstreams[all[i].upstream] = true
		if none {
			all[i].job.Priority = selection.Low
		}
	}
	delete(upstreams, "")
	s.Upstreams = len(upstreams)
	for i := range all {
		e := &all[i]
		if e.answered = e.answered && (s.Upstreams == 0 || e.upstream != ""); !e.answered {
			continue
		}
		if e.known {
			s.Hit++
		}
		if e.known && !e.cold && e.job.Load == 0 {
			s.Hits++
		}
		if e.job.Offset >= all[len(all)-1].job.Offset/10 && e.job.Priority == selection.Low {
			s.Duration += e.end - e.job.Offset
			low++
		}
	}
	s.Duration /= max(1, low)
	return s
}
