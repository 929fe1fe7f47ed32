package main

import (
	"errors"
	"io"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/lab/workload"
	"example.org/pilotfish/pkg/trace"
)

type generateCommand struct {
	Scenario   string           `type:"path" placeholder:"FILE" help:"Take the workload and the seed of a scenario; flags go over them."`
	Seed       uint64           `placeholder:"N" help:"Which of the workloads that fit the description; default 1."`
	Pattern    workload.Pattern `placeholder:"NAME" help:"How jobs arrive: schedules, steady, single-burst or on-off; default schedules."`
	Jobs       int              `placeholder:"N" help:"How many; default 2879676."`
	Duration   float64          `placeholder:"SECONDS" help:"The time in which all are sent; default 86400."`
	StartHour  int              `placeholder:"HOUR" help:"The hour of the day at time zero; default 0."`
	Submitters int              `placeholder:"N" help:"How many submitters; default 40."`
	HighShare  float64          `placeholder:"SHARE" help:"The share of high jobs; default 0.2."`
	Static     bool             `help:"Leave every project's data as it is."`
	Output     string           `short:"o" type:"path" placeholder:"FILE" help:"Where to write; default stdout."`
}

func (c *generateCommand) Run(s cli.Console) error {
	cfg, err := c.workload()
	if err != nil {
		return err
	}
	g, err := workload.New(cfg)
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { return copyJobs(w, g) }
	if c.Output != "" {
		return create(c.Output, write)
	}
	return write(s.Out)
}

// workload is the scenario's, or the default, with the flags over it.
func (c *generateCommand) workload() (workload.Config, error) {
	cfg := workload.Config{Seed: 1}
	if c.Scenario != "" {
		s, err := loadScenario(c.Scenario)
		if err != nil {
			return cfg, err
		}
		if s.Trace != "" {
			return cfg, errors.New(c.Scenario + ": has a trace, nothing to generate")
		}
		cfg = s.jobs.workload
		cfg.Seed = s.Seed
	}
	given(&cfg.Seed, c.Seed)
	given(&cfg.Pattern, c.Pattern)
	given(&cfg.Jobs, c.Jobs)
	given(&cfg.Duration, c.Duration)
	given(&cfg.StartHour, c.StartHour)
	given(&cfg.Submitters, c.Submitters)
	given(&cfg.HighShare, c.HighShare)
	given(&cfg.Static, c.Static)
	return cfg, nil
}

// given lays a flag over a field, if it was given.
func given[T comparable](field *T, flag T) {
	var zero T
	if flag != zero {
		*field = flag
	}
}

func copyJobs(w io.Writer, from *workload.Generator) error {
	out := trace.NewWriter(w)
	for {
		job, err := from.Next()
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return err
		}
		if err := out.Write(&job); err != nil {
			return err
		}
	}
}
