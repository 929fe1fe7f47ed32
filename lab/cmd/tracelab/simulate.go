package main

import (
	"fmt"
	"runtime"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/lab/scenario"
)

type simulateCommand struct {
	Scenario string `arg:"" type:"path" help:"The scenario, a YAML file."`
}

func (c *simulateCommand) Run(console cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	s, err := scenario.Load(c.Scenario)
	if err != nil {
		return err
	}
	played := 0
	results, err := s.Play(ctx, runtime.GOMAXPROCS(0), func(what string) {
		played++
		fmt.Fprintf(console.Err, "%d/%d %s\n", played, len(s.Runs)*s.Seeds, what)
	})
	if err != nil {
		return err
	}
	return results.WriteText(console.Out)
}
