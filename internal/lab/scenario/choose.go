package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.org/pilotfish/internal/lab/workload"
)

// Choice is the part of a scenario to play. The zero value of a field leaves the
// scenario as it is, but Scale is required.
type Choice struct {
	// Only names runs; the runs that they are compared with are played too.
	Only []string
	// Seeds is the number of trials of each run.
	Seeds int
	// Scale is the share of the jobs and of the time, above 0 to 1.
	Scale float64
}

// Choose lays a choice over the scenario, measures the jobs, and returns the
// runs to play. Its errors name the flags of tracelab simulate.
func (s *Scenario) Choose(c Choice) ([]*Run, error) {
	switch {
	case c.Seeds < 0 || c.Seeds > maxSeeds:
		return nil, fmt.Errorf("--seeds %d is not between 1 and %d", c.Seeds, maxSeeds)
	case !(c.Scale > 0 && c.Scale <= 1):
		return nil, fmt.Errorf("--scale %v is not above 0 and at most 1", c.Scale)
	}
	if c.Seeds > 0 {
		s.Seeds = c.Seeds
	}
	wanted := map[string]bool{}
	for _, name := range c.Only {
		at := slices.IndexFunc(s.Runs, func(r Run) bool { return r.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("--run %q: the scenario's runs are %s", name, strings.Join(s.names(), "; "))
		}
		wanted[name] = true
		wanted[s.Runs[at].Against] = true
	}
	var runs []*Run
	for i := range s.Runs {
		if len(wanted) == 0 || wanted[s.Runs[i].Name] {
			runs = append(runs, &s.Runs[i])
		}
	}
	s.End = time.Duration(float64(s.End) * c.Scale)
	s.WarmUp = time.Duration(float64(s.WarmUp) * c.Scale)
	for i := range s.Runs {
		s.Runs[i].Fleet.Scale(c.Scale)
	}
	return runs, measure(runs, c.Scale)
}

// measure measures the jobs of every run, each trace once.
func measure(runs []*Run, share float64) error {
	traces := map[string]jobs{}
	for _, r := range runs {
		if known, ok := traces[r.jobs.trace]; ok && r.jobs.trace != "" {
			r.jobs = known
			continue
		}
		if err := r.jobs.measure(share); err != nil {
			return err
		}
		traces[r.jobs.trace] = r.jobs
	}
	return nil
}

func (s *Scenario) names() []string {
	var names []string
	for _, r := range s.Runs {
		names = append(names, r.Name)
	}
	return names
}

// Generated is the scenario's workload, with its seed. A scenario that has a
// trace has none.
func (s *Scenario) Generated() (workload.Config, error) {
	if s.Trace != "" {
		return workload.Config{}, errors.New("has a trace, nothing to generate")
	}
	c := s.jobs.workload
	c.Seed = s.Seed
	return c, nil
}
