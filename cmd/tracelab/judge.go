package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/lab/page"
	"example.org/pilotfish/internal/lab/results"
	"example.org/pilotfish/internal/lab/scenario"
)

type judgeCommand struct {
	Dir    string   `arg:"" type:"path" default:"testdata/scenarios/judging" help:"The folder of the families."`
	Family []string `placeholder:"NAME" help:"Play only this family; repeat for more."`
	Short  bool     `help:"Play a twentieth of the jobs and of the time with one seed: to try the command, not to judge."`
	JSON   string   `name:"json" type:"path" placeholder:"FILE" help:"Save the verdicts."`
	Jobs   int      `placeholder:"N" help:"How many runs play at once; by default as many as there are CPUs."`
}

func (c *judgeCommand) Run(console cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	return c.judge(ctx, console)
}

func (c *judgeCommand) judge(ctx context.Context, console cli.Console) error {
	all, err := scenario.LoadFamilies(c.Dir, c.Family)
	if err != nil {
		return err
	}
	choice := scenario.Choice{Scale: 1}
	if c.Short {
		choice = scenario.Choice{Scale: 0.05, Seeds: 1}
	}
	if c.Jobs < 0 {
		return fmt.Errorf("--jobs %d is negative", c.Jobs)
	}
	families, err := scenario.NewFamilies(all, choice)
	if err := errors.Join(err, cli.CheckDirectory(filepath.Dir(c.JSON))); err != nil {
		return err
	}
	progress := cli.StartProgress(console.Err, families.Done)
	verdicts, err := families.Play(ctx, cmp.Or(c.Jobs, runtime.GOMAXPROCS(0)), func(v results.Verdict) {
		progress.Line(fmt.Sprintf("%s: %.2f times the mean low wait of %s", v.Family, v.Marks[0].Ratio.Value, v.Marks[0].Rival))
	})
	progress.End()
	if len(verdicts) == 0 {
		return err
	}
	j := results.Sum(verdicts)
	if c.JSON != "" {
		if err := cli.WriteFile(c.JSON, func(w io.Writer) error { return json.NewEncoder(w).Encode(&j) }); err != nil {
			return err
		}
	}
	return errors.Join(page.Judgement(console.Out, &j), err)
}
