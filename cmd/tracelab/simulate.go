package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/lab/stats"
)

type simulateCommand struct {
	Scenario string   `arg:"" type:"path" help:"The scenario, a YAML file."`
	Only     []string `name:"run" sep:"none" placeholder:"NAME" help:"Play only this run, and what it is compared with; repeat for more."`
	Seeds    int      `placeholder:"N" help:"Repeat each run with this many seeds, instead of the scenario's."`
	Scale    float64  `default:"1" placeholder:"SHARE" help:"Play this share of the jobs and of the time, above 0 to 1; default 1."`
	JSON     string   `name:"json" type:"path" placeholder:"FILE" help:"Save the results, for report."`
	HTML     string   `name:"html" type:"path" placeholder:"FILE" help:"Write a report with figures."`
	Figures  string   `type:"path" placeholder:"DIR" help:"Write each figure to a file of its own."`
	Jobs     int      `placeholder:"N" help:"How many runs play at once; by default as many as there are CPUs."`
}

func (c *simulateCommand) Run(s cli.Console) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends at once
	return c.simulate(ctx, s)
}

func (c *simulateCommand) simulate(ctx context.Context, s cli.Console) error {
	sc, err := loadScenario(c.Scenario)
	if err != nil {
		return err
	}
	runs, err := c.choose(sc)
	if err != nil {
		return err
	}
	published, err := readReference(&sc.Reference)
	if err != nil {
		return err
	}
	l := newLab(sc, runs, c.Jobs)
	p := startProgress(l, s.Err)
	played, err := l.run(ctx)
	p.end()
	if err != nil && !errors.Is(err, cli.ErrInterrupted) {
		return err
	}
	if len(played) == 0 {
		return fmt.Errorf("%w before any run was done", err)
	}
	res := gather(sc, runs, played)
	res.Reference = published
	if err := c.save(&res, s); err != nil {
		return err
	}
	if len(played) < len(l.trials) {
		return fmt.Errorf("%w: these are the %d of %d runs that were done", cli.ErrInterrupted, len(played), len(l.trials))
	}
	return nil
}

// choose lays the flags over the scenario, and returns the runs to play.
func (c *simulateCommand) choose(s *scenario) ([]*spec, error) {
	switch {
	case c.Seeds < 0 || c.Seeds > maxSeeds:
		return nil, fmt.Errorf("--seeds %d is not between 1 and %d", c.Seeds, maxSeeds)
	case !(c.Scale > 0 && c.Scale <= 1):
		return nil, fmt.Errorf("--scale %v is not above 0 and at most 1", c.Scale)
	case c.Jobs < 0:
		return nil, fmt.Errorf("--jobs %d is negative", c.Jobs)
	}
	for _, file := range []string{c.JSON, c.HTML} {
		// Better now than after the runs.
		if _, err := os.Stat(filepath.Dir(file)); file != "" && err != nil {
			return nil, err
		}
	}
	if c.Figures != "" {
		if err := checkDirectory(c.Figures); err != nil {
			return nil, err
		}
	}
	orDefault(&c.Jobs, runtime.GOMAXPROCS(0))
	if c.Seeds > 0 {
		s.Seeds = c.Seeds
	}
	wanted := map[string]bool{}
	for _, name := range c.Only {
		at := slices.IndexFunc(s.Runs, func(r spec) bool { return r.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("--run %q: the scenario's runs are %s", name, strings.Join(s.names(), "; "))
		}
		wanted[name] = true
		wanted[s.Runs[at].Against] = true
	}
	var runs []*spec
	for i := range s.Runs {
		if len(wanted) == 0 || wanted[s.Runs[i].Name] {
			runs = append(runs, &s.Runs[i])
		}
	}
	s.End = time.Duration(float64(s.End) * c.Scale)
	return runs, measureAll(runs, c.Scale)
}

// measureAll measures the jobs of every run, each trace once.
func measureAll(runs []*spec, share float64) error {
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

func (s *scenario) names() []string {
	var names []string
	for _, r := range s.Runs {
		names = append(names, r.Name)
	}
	return names
}

// save writes the results everywhere they are wanted.
func (c *simulateCommand) save(r *results, s cli.Console) error {
	if err := r.writeText(s.Out); err != nil {
		return err
	}
	if c.JSON != "" {
		if err := create(c.JSON, r.write); err != nil {
			return err
		}
	}
	return r.draw(c.HTML, c.Figures)
}

func readReference(files *reference) (stats.Tables, error) {
	var t stats.Tables
	if files.Results != "" {
		f, err := os.Open(files.Results)
		if err != nil {
			return t, err
		}
		defer f.Close()
		if t.Rows, err = stats.ReadRows(f, files.Results); err != nil {
			return t, err
		}
	}
	if files.Variance != "" {
		f, err := os.Open(files.Variance)
		if err != nil {
			return t, err
		}
		defer f.Close()
		if t.Variances, err = stats.ReadVariances(f, files.Variance); err != nil {
			return t, err
		}
	}
	return t, nil
}
