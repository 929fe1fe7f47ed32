package scenario

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/lab/rivals"
	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/workload"
)

// Load reads a scenario file and the published results that it names. The error lists all
// mistakes in the file with their positions.
func Load(path string) (*Scenario, error) {
	d, err := cli.Open(path)
	if err != nil {
		return nil, err
	}
	s := &Scenario{Seed: 1, Seeds: 1, Workload: workload.Default(), Fleet: sim.DefaultFleet(), Sidecars: sim.DefaultSidecars()}
	_, err = d.Decode(s, func(f *settings.Faults) {
		s.name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		for i := range s.Runs { // decode again, with the scenario's values as defaults
			o := overload.Default()
			r := Run{Overload: o.Policy, Stalled: o.Stalled, Reset: o.Reset, Workload: s.Workload, Fleet: s.Fleet, Sidecars: s.Sidecars}
			d.DecodeKey(fmt.Sprintf("runs[%d]", i), &r)
			s.Runs[i] = r
		}
		s.check(f)
	})
	if err != nil || s.Reference == "" {
		return s, err
	}
	file := s.Reference
	if !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(path), file)
	}
	return s, s.published.read(file)
}

// maxPlayed bounds the number of runs and of seeds, and so the memory.
const maxPlayed = 1000

// check adds invalid values to f. The scenario must be complete.
func (s *Scenario) check(f *settings.Faults) {
	f.Within("seeds", s.Seeds, 1, maxPlayed)
	f.NotNegative("end", s.End)
	f.NotNegative("warm_up", s.WarmUp)
	s.Workload.Check(f.In("workload"))
	s.Fleet.Check(f.In("fleet"))
	s.Sidecars.Check(f.In("sidecars"))
	if len(s.Runs) == 0 {
		f.Add("runs", "at least one run is required")
	}
	if len(s.Runs) > maxPlayed {
		f.Add("runs", "%d runs are more than %d", len(s.Runs), maxPlayed)
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
		f.Add("name", "%q is the name of two runs", r.Name)
	}
	f.OneOf("overload", r.Overload, rivals.AllDetection())
	detection := r.detection()
	detection.Policy = "none" // checked above under this file's name of the key
	detection.Check(f)
	f.OneOf("policy", r.Policy, rivals.All())
	if r.IgnoreWait && r.Overload != "dagor" {
		f.Add("ignore_wait", "is for the overload policy dagor, not for %s", r.Overload)
	}
	if len(r.Times) > 0 && r.Policy != "expected" {
		f.Add("times", "is for the policy expected, not for %s", r.Policy)
	}
	known := multiply(nil).constants()
	for name, by := range r.Times {
		if known[name] == nil || !(by >= 0) {
			f.Add("times", "%s: %v: the policy expected has no such constant, or the factor is below 0", name, by)
		}
	}
	// Values that the run inherits from the scenario were checked there.
	if r.Workload != s.Workload {
		r.Workload.Check(f.In("workload"))
	}
	if r.Fleet != s.Fleet {
		r.Fleet.Check(f.In("fleet"))
	}
	if r.Sidecars != s.Sidecars {
		r.Sidecars.Check(f.In("sidecars"))
	}
}
