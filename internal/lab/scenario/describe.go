package scenario

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/lab/stats"
	"example.org/pilotfish/pkg/overload"
	"example.org/pilotfish/pkg/selection"
)

// describe tells people how the run is set up, one point after the other. The
// run stops at end, unless that is 0.
func (r *Run) describe(end time.Duration) []string {
	f, s := &r.Fleet, &r.Sidecars
	said := []string{r.jobs.describe(), fmt.Sprintf("%s of %d cores", number(f.Upstreams, "upstream"), f.Cores), fmt.Sprintf("%v cache each", f.Cache)}
	if end > 0 {
		said = append(said, "stopped at "+stats.Span(end.Seconds()))
	}
	if f.Backlog > 0 {
		said = append(said, fmt.Sprintf("backlog %d", f.Backlog))
	}
	if f.Parallel > 1 {
		said = append(said, fmt.Sprintf("joblets on up to %d cores", f.Parallel))
	}
	if f.Contention > 0 {
		said = append(said, fmt.Sprintf("contention %v", f.Contention))
	}
	for _, u := range f.Unlike {
		said = append(said, u.String())
	}
	for _, x := range f.Faults {
		said = append(said, x.String())
	}
	if g := f.Growth; g != nil {
		said = append(said, fmt.Sprintf("%d that join from %v on", g.Upstreams, g.At))
	}
	if x := f.Restart; x != nil {
		said = append(said, fmt.Sprintf("rolling restart from %v on", x.At))
	}
	if p := f.Preemption; p != nil {
		said = append(said, fmt.Sprintf("%d pre-emptible, %.0f %% early", p.Upstreams, 100*p.Early))
	}
	said = append(said, number(s.Count, "sidecar"), fmt.Sprintf("reports every %v", s.Interval))
	if s.Reserve > 0 {
		said = append(said, fmt.Sprintf("%v of the share of high jobs reserved", s.Reserve))
	}
	said = append(said, projects(&s.Projects)...)
	if s.Lag > 0 {
		said = append(said, fmt.Sprintf("%v old", s.Lag))
	}
	if s.Together {
		said = append(said, "the same for all")
	}
	if s.Hints {
		said = append(said, "load hints")
	}
	if s.Freeze.For > 0 {
		said = append(said, fmt.Sprintf("none from %s for %s", stats.Span(s.Freeze.At.Seconds()), stats.Span(s.Freeze.For.Seconds())))
	}
	if r.Overload != overload.DefaultPolicy && r.Stalled != overload.DefaultLimit {
		said = append(said, fmt.Sprintf("limit %v stalled", r.Stalled))
	}
	if r.Dagor.IgnoreWait {
		said = append(said, "DAGOR by stalled joblets")
	}
	if len(r.Expected.Off) > 0 {
		said = append(said, "without "+strings.Join(r.Expected.Off, ", "))
	}
	said = append(said, changed(r.Expected.ExpectedConfig)...)
	if r.Bound > 0 {
		said = append(said, fmt.Sprintf("bound %v", r.Bound))
	}
	if v := &r.Submitters; v.Patience > 0 {
		said = append(said, fmt.Sprintf("high jobs sent again after %v, %d times", v.Patience, v.Again))
	}
	return append(said, number(s.Attempts, "attempt"), fmt.Sprintf("connect timeout %v", s.ConnectTimeout))
}

// projects tells how projects are bounded.
func projects(s *dispatch.ProjectSettings) (said []string) {
	if s.Limit > 0 {
		said = append(said, fmt.Sprintf("%d jobs of a project in flight", s.Limit))
	}
	if len(s.Overrides) > 0 {
		said = append(said, number(len(s.Overrides), "project")+" with a limit of its own")
	}
	if s.Lag > 0 {
		said = append(said, fmt.Sprintf("lag %v", s.Lag))
	}
	if s.Fair {
		said = append(said, "projects take turns")
	}
	return said
}

// changed tells the parameters that are not at their defaults, by their keys.
func changed(c selection.ExpectedConfig) (said []string) {
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		if key := v.Type().Field(i).Tag.Get("yaml"); key != "" && !v.Field(i).IsZero() {
			said = append(said, fmt.Sprintf("%s %v", key, v.Field(i)))
		}
	}
	return said
}

// number writes a count of things.
func number(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
