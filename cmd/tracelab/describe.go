package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// describe says how the run is set up, point by point, for people. end
// is when it stops, unless it is 0.
func (r *spec) describe(end time.Duration) []string {
	f, s := &r.Fleet, &r.Sidecars
	cache, _ := f.Cache.MarshalYAML() // never fails
	said := []string{r.jobs.describe(), fmt.Sprintf("%s of %d cores", number(f.Upstreams, "upstream"), f.Cores), fmt.Sprintf("%s cache each", cache)}
	if end > 0 {
		said = append(said, "stopped at "+span(end.Seconds()))
	}
	if f.Backlog > 0 {
		said = append(said, fmt.Sprintf("backlog %d", f.Backlog))
	}
	if p := f.Preemption; p != nil {
		said = append(said, fmt.Sprintf("%d pre-emptible, %.0f %% early", p.Upstreams, 100*p.Early))
	}
	said = append(said, number(s.Count, "sidecar"), fmt.Sprintf("reports every %v", s.Interval))
	if *s.Hints {
		said = append(said, "load hints")
	}
	if s.Freeze.For > 0 {
		said = append(said, fmt.Sprintf("none from %s for %s", span(s.Freeze.At.Seconds()), span(s.Freeze.For.Seconds())))
	}
	if r.Overload != "none" && r.Stalled != 100 {
		said = append(said, fmt.Sprintf("limit %v stalled", r.Stalled))
	}
	if r.Dagor.IgnoreWait {
		said = append(said, "DAGOR by stalled joblets")
	}
	if len(r.Expected.Off) > 0 {
		said = append(said, "without "+strings.Join(r.Expected.Off, ", "))
	}
	return append(said, number(s.Attempts, "attempt"), fmt.Sprintf("connect timeout %v", s.ConnectTimeout))
}

// common splits what is said of several runs into what is said of all, and
// what each has beyond that.
func common(of [][]string) (all []string, rest []string) {
	for _, point := range of[0] {
		if !slices.ContainsFunc(of, func(said []string) bool { return !slices.Contains(said, point) }) {
			all = append(all, point)
		}
	}
	for _, said := range of {
		own := slices.DeleteFunc(slices.Clone(said), func(point string) bool { return slices.Contains(all, point) })
		rest = append(rest, strings.Join(own, ", "))
	}
	return all, rest
}

// thousands writes a number with a comma before every third digit.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// span writes a number of seconds to the second, without units that are zero.
func span(seconds float64) string {
	text := time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
	if whole, ok := strings.CutSuffix(text, "m0s"); ok {
		text = whole + "m"
	}
	if whole, ok := strings.CutSuffix(text, "h0m"); ok {
		text = whole + "h"
	}
	return text
}

// number is a count of things.
func number(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
