package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/lab/scenario"
)

type simulateCommand struct {
	Scenario string   `arg:"" type:"path" help:"The scenario, a YAML file."`
	Only     []string `name:"run" placeholder:"NAME" help:"Play only this run, and what it is compared with; repeat for more."`
	Seeds    int      `placeholder:"N" help:"Repeat each run with this many seeds, instead of the scenario's."`
	Scale    float64  `default:"1" placeholder:"SHARE" help:"Play this share of the jobs and of the time, above 0 to 1."`
	JSON     string   `name:"json" type:"path" placeholder:"FILE" help:"Save the results."`
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
	if err := errors.Join(err, checkDirectory(filepath.Dir(c.JSON))); err != nil {
		return err
	}
	s, err := scenario.Load(c.Scenario)
	if err != nil {
		return err
	}
	published, err := s.Published()
	if err != nil {
		return err
	}
	lab, err := scenario.NewLab(scenario.Choice{Only: c.Only, Seeds: c.Seeds, Scale: c.Scale}, s)
	if err != nil {
		return err
	}
	printNotes(console.Err, s.Notes)
	played := 0
	set, err := lab.Play(ctx, jobs, func(t *scenario.Trial) {
		played++
		fmt.Fprintf(console.Err, "%d/%d %v\n", played, lab.Trials, t)
	})
	if err != nil {
		return err
	}
	set.Reference = published
	if c.JSON != "" {
		if err := writeFile(c.JSON, set.Write); err != nil {
			return err
		}
	}
	return set.WriteText(console.Out)
}
