package main

import (
	"cmp"
	"fmt"
	"runtime"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/lab/scenario"
)

type simulateCommand struct {
	Scenario string `arg:"" type:"path" help:"The scenario, a YAML file."`
	parallel
}

// parallel is how many runs play at once.
type parallel struct {
	Jobs int `placeholder:"N" help:"How many runs play at once; by default as many as there are CPUs."`
}

func (p parallel) jobs() (int, error) {
	if p.Jobs < 0 {
		return 0, fmt.Errorf("--jobs %d is negative", p.Jobs)
	}
	return cmp.Or(p.Jobs, runtime.GOMAXPROCS(0)), nil
}

func (c *simulateCommand) Run(console cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	jobs, err := c.jobs()
	if err != nil {
		return err
	}
	s, err := scenario.Load(c.Scenario)
	if err != nil {
		return err
	}
	played := 0
	results, err := s.Play(ctx, jobs, func(what string) {
		played++
		fmt.Fprintf(console.Err, "%d/%d %s\n", played, len(s.Runs)*s.Seeds, what)
	})
	if err != nil {
		return err
	}
	return results.WriteText(console.Out)
}
