package scenario

import (
	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/lab/rivals"
	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/pkg/selection"
)

// factors are by what the constants of the policy expected are multiplied.
type factors struct {
	Spare    float64 `yaml:"spare"`
	Fetch    float64 `yaml:"fetch"`
	Rank     float64 `yaml:"rank"`
	Crowding float64 `yaml:"crowding"`
	Near     float64 `yaml:"near"`
	Tail     float64 `yaml:"tail"`
}

// unchanged are the factors that change nothing.
var unchanged = factors{1, 1, 1, 1, 1, 1}

func (r *Run) policy() (selection.Policy, error) {
	if by := r.Times; r.Policy == "expected" {
		e := selection.DefaultExpected()
		e.Spare, e.Fetch, e.Rank, e.Crowding, e.Near = e.Spare*by.Spare, e.Fetch*by.Fetch, e.Rank*by.Rank, e.Crowding*by.Crowding, e.Near*by.Near
		e.Tail *= by.Tail
		return e, nil
	}
	return rivals.New(r.Policy)
}

func (r *Run) detector() (func() overload.Detector, error) {
	if r.Overload != "dagor" {
		return overload.New(r.Overload, r.Stalled)
	}
	return func() overload.Detector { return overload.NewDagor(r.Stalled, r.Dagor.IgnoreWait) }, nil
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
		Seed: seed, Policy: policy, Detector: detector,
		Fleet: r.Fleet, Sidecars: r.Sidecars,
	}, err
}
