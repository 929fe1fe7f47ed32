package main

import (
	"cmp"
	"fmt"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/lab/scenario"
	"example.org/pilotfish/lab/workload"
)

type generateCommand struct {
	Scenario string           `type:"path" placeholder:"FILE" help:"Take the workload and the seed of a scenario; flags go over them."`
	Seed     uint64           `placeholder:"N" help:"Which of the workloads that fit the description; default 1."`
	Pattern  workload.Pattern `placeholder:"NAME" help:"How jobs arrive: schedules, steady or sources; default schedules."`
	Jobs     int              `placeholder:"N" help:"How many; default 2879676."`
	Duration float64          `placeholder:"SECONDS" help:"The time in which all are sent; default 86400."`
	Static   bool             `help:"Leave every project's data as it is."`
	Output   string           `short:"o" type:"path" placeholder:"FILE" help:"Where to write; default stdout."`
}

func (c *generateCommand) Run(console cli.Console) error {
	cfg := workload.Default()
	cfg.Seed = 1
	if c.Scenario != "" {
		s, err := scenario.Load(c.Scenario)
		if err != nil {
			return err
		}
		if cfg, err = s.Generated(); err != nil {
			return fmt.Errorf("%s: %w", c.Scenario, err)
		}
	}
	cfg.Seed = cmp.Or(c.Seed, cfg.Seed)
	cfg.Pattern = cmp.Or(c.Pattern, cfg.Pattern)
	cfg.Jobs = cmp.Or(c.Jobs, cfg.Jobs)
	cfg.Duration = cmp.Or(c.Duration, cfg.Duration)
	cfg.Static = c.Static || cfg.Static
	g, err := workload.New(cfg)
	if err != nil {
		return err
	}
	if c.Output != "" {
		return writeFile(c.Output, g.Write)
	}
	return g.Write(console.Out)
}
