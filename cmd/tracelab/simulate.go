package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/lab/scenario"
)

type simulateCommand struct {
	Scenario string   `arg:"" type:"path" help:"The scenario, a YAML file."`
	Only     []string `name:"run" placeholder:"NAME" help:"Play only this run, and what it is compared with; repeat for more."`
	Seeds    int      `placeholder:"N" help:"Repeat each run with this many seeds, instead of the scenario's."`
	Scale    float64  `default:"1" placeholder:"SHARE" help:"Play this share of the jobs and of the time, above 0 to 1."`
	Fetches  bool     `help:"Show instead how long fetches took with the first seed, and how long sidecars expected them to take."`
	JSON     string   `name:"json" type:"path" placeholder:"FILE" help:"Save the results, for report."`
	outputs
	Jobs int `placeholder:"N" help:"How many runs play at once; by default as many as there are CPUs."`
}

func (c *simulateCommand) Run(console cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	return c.simulate(ctx, console)
}

func (c *simulateCommand) simulate(ctx context.Context, console cli.Console) error {
	s, err := scenario.Load(c.Scenario)
	if err != nil {
		return err
	}
	runs, err := s.Choose(scenario.Choice{Only: c.Only, Seeds: c.Seeds, Scale: c.Scale})
	if err != nil {
		return err
	}
	if c.Fetches {
		return s.ShowFetches(ctx, runs, console.Out)
	}
	if c.Jobs < 0 {
		return fmt.Errorf("--jobs %d is negative", c.Jobs)
	}
	if err := errors.Join(cli.CheckDirectory(filepath.Dir(c.JSON)), c.check()); err != nil {
		return err
	}
	published, err := s.Reference.Read()
	if err != nil {
		return err
	}
	lab := scenario.NewLab(s, runs)
	set, interrupted := lab.PlayVisibly(ctx, cmp.Or(c.Jobs, runtime.GOMAXPROCS(0)), console.Err)
	if len(set.Runs) == 0 {
		return interrupted
	}
	set.Reference = published
	if c.JSON != "" {
		if err := cli.WriteFile(c.JSON, set.Write); err != nil {
			return err
		}
	}
	return errors.Join(c.write(&set, console), interrupted)
}
