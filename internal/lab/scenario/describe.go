package scenario

import (
	"fmt"
	"strings"
	"time"

	"example.org/pilotfish/internal/lab/stats"
	"example.org/pilotfish/pkg/overload"
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
	if p := f.Preemption; p != nil {
		said = append(said, fmt.Sprintf("%d pre-emptible, %.0f %% early", p.Upstreams, 100*p.Early))
	}
	said = append(said, number(s.Count, "sidecar"), fmt.Sprintf("reports every %v", s.Interval))
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
	return append(said, number(s.Attempts, "attempt"), fmt.Sprintf("connect timeout %v", s.ConnectTimeout))
}

// number writes a count of things.
func number(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
