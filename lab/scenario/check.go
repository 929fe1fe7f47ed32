package scenario

import (
	"fmt"
	"reflect"
	"slices"

	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/lab/rivals"
)

// The largest numbers that make sense; they bound memory.
const (
	maxSeeds = 1000
	maxRuns  = 1000
)

// check refuses nonsense. It expects a complete scenario.
func (s *Scenario) check(f *settings.Faults) {
	f.Within("seeds", s.Seeds, 1, maxSeeds)
	f.NotNegative("end", s.End)
	f.NotNegative("warm_up", s.WarmUp)
	s.Workload.Check(f.In("workload"))
	s.Fleet.Check(f.In("fleet"))
	s.Sidecars.Check(f.In("sidecars"))
	if len(s.Runs) == 0 {
		f.Add("runs", "there is no run")
	}
	if len(s.Runs) > maxRuns {
		f.Add("runs", "%d runs are more than %d", len(s.Runs), maxRuns)
	}
	for i := range s.Runs {
		s.checkRun(f.In(fmt.Sprintf("runs[%d]", i)), i)
	}
}

func (s *Scenario) checkRun(f *settings.Faults, i int) {
	r := &s.Runs[i]
	switch {
	case r.Name == "":
		f.Add("name", "a name is required")
	case slices.IndexFunc(s.Runs, func(other Run) bool { return other.Name == r.Name }) < i:
		f.Add("name", "%q is there twice", r.Name)
	}
	f.OneOf("overload", r.Overload, overload.Names())
	if !(r.Stalled > 0) {
		f.Add("stalled", "%v must be positive", r.Stalled)
	}
	f.OneOf("policy", r.Policy, rivals.All())
	if r.Dagor.IgnoreWait && r.Overload != "dagor" {
		f.Add("dagor", "is for the overload policy dagor, not for %s", r.Overload)
	}
	if r.Times != unchanged && r.Policy != "expected" {
		f.Add("times", "is for the policy expected, not for %s", r.Policy)
	}
	if by := r.Times; !(min(by.Spare, by.Fetch, by.Rank, by.Crowding, by.Near, by.Tail) >= 0) {
		f.Add("times", "a factor is below 0")
	}
	// What the run has from the scenario was checked there.
	if !reflect.DeepEqual(r.Fleet, s.Fleet) {
		r.Fleet.Check(f.In("fleet"))
	}
	if !reflect.DeepEqual(r.Sidecars, s.Sidecars) {
		r.Sidecars.Check(f.In("sidecars"))
	}
}
