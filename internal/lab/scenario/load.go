package scenario

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/lab/sim"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/overload"
)

// Load reads a scenario file. The error joins all that is wrong with it, each
// with its place in the file.
func Load(path string) (*Scenario, error) {
	d, err := cli.Open(path)
	if err != nil {
		return nil, err
	}
	return parse(d, path)
}

// parse is Load once the file was read.
func parse(d cli.Document, path string) (*Scenario, error) {
	s := defaults()
	_, err := d.Decode(&s, func(f *settings.Faults) {
		s.complete(d, path)
		s.check(f)
	})
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// complete fills in what depends on other keys, and finds the files that the
// scenario names.
//
// The runs are those of d, which need not be the scenario's own file.
func (s *Scenario) complete(d cli.Document, path string) {
	s.Name = cmp.Or(s.Name, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	for _, file := range []*string{&s.Trace, &s.Reference.Results, &s.Reference.Variance} {
		if *file != "" && !filepath.IsAbs(*file) {
			*file = filepath.Join(filepath.Dir(path), *file)
		}
	}
	complete(&s.Fleet)
	s.jobs = newJobs(s.Workload, s.Trace, s.Speed)
	for i := range s.Runs {
		r := s.newRun()
		_ = d.DecodeKey(fmt.Sprintf("runs[%d]", i), &r) // its faults were found before
		complete(&r.Fleet)
		r.Reference = cmp.Or(r.Reference, r.Name)
		r.jobs = newJobs(r.Workload, s.Trace, s.Speed)
		s.Runs[i] = r
	}
	if len(s.Runs) > 0 {
		s.Base = cmp.Or(s.Base, s.Runs[0].Name)
	}
	for i := range s.Runs {
		s.Runs[i].Against = cmp.Or(s.Runs[i].Against, s.Base)
	}
}

// newRun is a run that has left all open.
func (s *Scenario) newRun() Run {
	r := Run{Overload: overload.DefaultPolicy, Stalled: overload.DefaultLimit, Workload: clone(s.Workload), Fleet: s.Fleet, Sidecars: s.Sidecars, Submitters: s.Submitters}
	r.Fleet.Preemption, r.Fleet.Growth, r.Fleet.Restart = clone(s.Fleet.Preemption), clone(s.Fleet.Growth), clone(s.Fleet.Restart)
	return r
}

// complete fills in how many of the upstreams are pre-emptible.
func complete(v *sim.Fleet) {
	if p := v.Preemption; p != nil && p.Upstreams == 0 {
		p.Upstreams = min(10, v.Upstreams)
	}
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
