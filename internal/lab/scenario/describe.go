package scenario

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"example.org/pilotfish/internal/lab/sim"
	"example.org/pilotfish/internal/lab/stats"
	"example.org/pilotfish/pkg/overload"
	"example.org/pilotfish/pkg/selection"
)

// describe tells people how the run is set up, one point after the other. The
// run stops at end, unless that is 0.
func (r *Run) describe(end time.Duration) []string {
	p := description{r.jobs.describe()}
	p.fleet(&r.Fleet, end)
	p.sidecars(&r.Sidecars)
	p.addIf(r.Overload != overload.DefaultPolicy && r.Stalled != overload.DefaultLimit, "limit %v stalled", r.Stalled)
	p.addIf(r.Dagor.IgnoreWait, "DAGOR by stalled joblets")
	p.addIf(len(r.Expected.Off) > 0, "without %s", strings.Join(r.Expected.Off, ", "))
	p.changed(r.Expected.ExpectedConfig)
	p.addIf(r.Bound > 0, "bound %v", r.Bound)
	p.addIf(r.Submitters.Patience > 0, "high jobs sent again after %v, %d times", r.Submitters.Patience, r.Submitters.Again)
	p.add("%s", number(r.Sidecars.Attempts, "attempt"))
	p.add("connect timeout %v", r.Sidecars.ConnectTimeout)
	return p
}

// description is what is told of a run, point by point.
type description []string

func (p *description) add(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

func (p *description) addIf(is bool, format string, args ...any) {
	if is {
		p.add(format, args...)
	}
}

func (p *description) fleet(f *sim.Fleet, end time.Duration) {
	p.add("%s of %d cores", number(f.Upstreams, "upstream"), f.Cores)
	p.add("%v cache each", f.Cache)
	p.addIf(end > 0, "stopped at %s", stats.Span(end.Seconds()))
	p.addIf(f.Backlog > 0, "backlog %d", f.Backlog)
	p.addIf(f.Parallel > 1, "joblets on up to %d cores", f.Parallel)
	p.addIf(f.Contention > 0, "contention %v", f.Contention)
	for _, u := range f.Unlike {
		p.add("%v", u)
	}
	for _, x := range f.Faults {
		p.add("%v", x)
	}
	if g := f.Growth; g != nil {
		p.add("%d that join from %v on", g.Upstreams, g.At)
	}
	if r := f.Restart; r != nil {
		p.add("rolling restart from %v on", r.At)
	}
	if e := f.Preemption; e != nil {
		p.add("%d pre-emptible, %.0f %% early", e.Upstreams, 100*e.Early)
	}
}

func (p *description) sidecars(s *sim.Sidecars) {
	p.add("%s", number(s.Count, "sidecar"))
	p.add("reports every %v", s.Interval)
	p.addIf(s.Reserve > 0, "%v of the share of high jobs reserved", s.Reserve)
	p.addIf(s.Projects.Limit > 0, "%d jobs of a project in flight", s.Projects.Limit)
	p.addIf(len(s.Projects.Overrides) > 0, "%s with a limit of its own", number(len(s.Projects.Overrides), "project"))
	p.addIf(s.Projects.Lag > 0, "lag %v", s.Projects.Lag)
	p.addIf(s.Projects.Fair, "projects take turns")
	p.addIf(s.Lag > 0, "%v old", s.Lag)
	p.addIf(s.Together, "the same for all")
	p.addIf(s.Hints, "load hints")
	p.addIf(s.Freeze.For > 0, "none from %s for %s", stats.Span(s.Freeze.At.Seconds()), stats.Span(s.Freeze.For.Seconds()))
}

// changed adds the parameters that are not at their defaults, by their keys.
func (p *description) changed(c selection.ExpectedConfig) {
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		if key := v.Type().Field(i).Tag.Get("yaml"); key != "" && !v.Field(i).IsZero() {
			p.add("%s %v", key, v.Field(i))
		}
	}
}

// number writes a count of things.
func number(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
