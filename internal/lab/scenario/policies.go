package scenario

import (
	"fmt"

	"example.org/pilotfish/internal/lab/sim"
	"example.org/pilotfish/pkg/overload"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/selection/rivals"
)

// parts names the parts of the policy expected.
func parts() []string {
	var names []string
	for _, p := range selection.Parts() {
		names = append(names, p.String())
	}
	return names
}

func part(name string) (selection.Part, bool) {
	for _, p := range selection.Parts() {
		if p.String() == name {
			return p, true
		}
	}
	return 0, false
}

// clairvoyant names the limit that only the simulator can show.
const clairvoyant = "clairvoyant"

// policies names what a run may choose by.
func policies() []string { return append(rivals.All(), clairvoyant) }

func (r *Run) policy() (selection.Policy, error) {
	switch r.Policy {
	case clairvoyant:
		return nil, nil
	case "bounded-hash":
		return selection.BoundedHash{Factor: r.Bound}, nil
	case "expected":
	default:
		return rivals.New(r.Policy)
	}
	c := r.Expected.ExpectedConfig
	for _, name := range r.Expected.Off {
		p, _ := part(name)
		c.Off |= p
	}
	return selection.NewExpected(c)
}

func (r *Run) detector() (func() overload.Detector, error) {
	if r.Overload != "dagor" {
		return overload.New(r.Overload, r.Stalled)
	}
	return overload.NewDagor(overload.DagorConfig{Limit: r.Stalled, IgnoreWait: r.Dagor.IgnoreWait})
}

// open is a run as the simulator takes it, and its jobs, which the caller closes. What it
// observes is left open.
func (s *Scenario) open(r *Run, seed uint64) (c sim.Config, in source, err error) {
	if c, err = r.setup(seed); err == nil {
		in, err = r.jobs.open(seed)
	}
	if err != nil {
		return c, nil, fmt.Errorf("run %q: %w", r.Name, err)
	}
	c.Source, c.WarmUp, c.End = in, s.WarmUp, s.End
	return c, in, nil
}

// setup is the run as the simulator takes it, without the jobs and without what
// it observes.
func (r *Run) setup(seed uint64) (sim.Config, error) {
	policy, err := r.policy()
	if err != nil {
		return sim.Config{}, err
	}
	detector, err := r.detector()
	return sim.Config{
		Seed: seed, Policy: policy, Clairvoyant: r.Policy == clairvoyant, Detector: detector,
		Fleet: r.Fleet, Sidecars: r.Sidecars, Submitters: r.Submitters,
	}, err
}
