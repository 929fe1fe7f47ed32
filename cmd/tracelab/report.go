package main

import (
	"cmp"
	"os"
	"path/filepath"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/lab/page"
	"example.org/pilotfish/internal/lab/results"
	"example.org/pilotfish/internal/lab/scenario"
)

// outputs are where results are shown, beside standard output.
type outputs struct {
	HTML    string `name:"html" type:"path" placeholder:"FILE" help:"Write a report with figures."`
	Figures string `type:"path" placeholder:"DIR" help:"Write each figure to a file of its own."`
}

// check refuses outputs that could not be written, before the work is done.
func (o *outputs) check() error {
	if err := cli.CheckDirectory(filepath.Dir(o.HTML)); err != nil {
		return err
	}
	return cli.CheckDirectory(cmp.Or(o.Figures, "."))
}

func (o *outputs) write(set *results.Set, console cli.Console) error {
	if err := page.Text(console.Out, set); err != nil {
		return err
	}
	return page.Files(set, o.HTML, o.Figures)
}

type reportCommand struct {
	Results []string `arg:"" type:"path" help:"Results that simulate has saved with --json; several are shown together. Or one capture."`
	outputs
}

func (c *reportCommand) Run(console cli.Console) error {
	captured, err := scenario.ReadCapture(c.Results[0])
	if err != nil {
		return err
	}
	if len(captured) > 0 && len(c.Results) == 1 { // several are no results, as Read says
		return page.ShowTrial(console.Out, filepath.Base(c.Results[0]), captured, c.HTML, c.Figures)
	}
	var all []results.Set
	for _, path := range c.Results {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		set, err := results.Read(f, path)
		f.Close()
		if err != nil {
			return err
		}
		all = append(all, set)
	}
	merged := results.Merge(all)
	return c.write(&merged, console)
}
