package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"example.org/pilotfish/internal/lab/workload"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/overload"
	"example.org/pilotfish/pkg/selection"
)

// The largest numbers that make sense; they bound memory.
const (
	maxSeeds = 1000
	maxRuns  = 1000
)

// check refuses nonsense. It expects a complete scenario.
func (s *Scenario) check(f *settings.Faults) {
	f.Within("seeds", s.Seeds, 1, maxSeeds)
	f.Positive("sample", s.Sample)
	f.NotNegative("end", s.End)
	f.NotNegative("warm_up", s.WarmUp)
	if s.Trace != "" && s.Workload != nil {
		f.Add("trace", "either a trace or a workload says what the jobs are, not both")
	}
	f.Between("speed", s.Speed, 0.001, 1000)
	if s.Trace == "" && s.Speed != 1 {
		f.Add("speed", "is for a trace; a workload has jobs and duration")
	}
	checkWorkload(f.In("workload"), s.Workload)
	if s.Apart && slices.ContainsFunc(s.Runs, func(r Run) bool { return len(r.jobs.workload.Crowds) == 0 }) {
		f.Add("apart", "is for a workload with crowds")
	}
	s.Fleet.Check(f.In("fleet"))
	s.Sidecars.Check(f.In("sidecars"))
	s.Submitters.Check(f.In("submitters"))
	if len(s.Runs) == 0 {
		f.Add("runs", "there is no run")
	}
	if len(s.Runs) > maxRuns {
		f.Add("runs", "%d runs are more than %d", len(s.Runs), maxRuns)
	}
	if len(s.Runs) > 0 && !s.has(s.Base) {
		f.Add("base", "there is no run %q", s.Base)
	}
	for i := range s.Runs {
		s.checkRun(f.In(fmt.Sprintf("runs[%d]", i)), i)
	}
}

// has reports whether there is a run of that name.
func (s *Scenario) has(name string) bool {
	return slices.ContainsFunc(s.Runs, func(r Run) bool { return r.Name == name })
}

func (s *Scenario) checkRun(f *settings.Faults, i int) {
	r := &s.Runs[i]
	switch {
	case r.Name == "":
		f.Add("name", "a name is required")
	case slices.IndexFunc(s.Runs, func(other Run) bool { return other.Name == r.Name }) < i:
		f.Add("name", "%q is there twice", r.Name)
	}
	if r.Against != s.Base && !s.has(r.Against) {
		f.Add("against", "there is no run %q", r.Against)
	}
	f.OneOf("overload", r.Overload, overload.Names())
	if !(r.Stalled > 0) {
		f.Add("stalled", "%v must be positive", r.Stalled)
	}
	f.OneOf("policy", r.Policy, policies())
	for n, name := range r.Expected.Off {
		if _, ok := part(name); !ok {
			f.Add(fmt.Sprintf("expected.off[%d]", n), "%q is not one of %s", name, strings.Join(parts(), ", "))
		}
	}
	if r.Policy != "expected" && (len(r.Expected.Off) > 0 || r.Expected.ExpectedConfig != (selection.ExpectedConfig{})) {
		f.Add("expected", "is for the policy expected, not for %s", r.Policy)
	}
	if _, err := selection.NewExpected(r.Expected.ExpectedConfig); err != nil {
		f.Add("expected", "%v", err)
	}
	switch {
	case r.Bound == 0:
	case r.Policy != "bounded-hash":
		f.Add("bound", "is for the policy bounded-hash, not for %s", r.Policy)
	default:
		f.Between("bound", r.Bound, 1, 1000)
	}
	if r.Dagor.IgnoreWait && r.Overload != "dagor" {
		f.Add("dagor", "is for the overload policy dagor, not for %s", r.Overload)
	}
	// What the run has from the scenario was checked there.
	if !reflect.DeepEqual(r.Workload, s.Workload) {
		checkWorkload(f.In("workload"), r.Workload)
	}
	if !reflect.DeepEqual(r.Fleet, s.Fleet) {
		r.Fleet.Check(f.In("fleet"))
	}
	if !reflect.DeepEqual(r.Sidecars, s.Sidecars) {
		r.Sidecars.Check(f.In("sidecars"))
	}
	if r.Submitters != s.Submitters {
		r.Submitters.Check(f.In("submitters"))
	}
}

func checkWorkload(f *settings.Faults, c *workload.Config) {
	if c == nil {
		return
	}
	if c.Seed != 0 {
		f.Add("seed", "the scenario's seed is that of its workload too")
	}
	c.Check(f)
}
