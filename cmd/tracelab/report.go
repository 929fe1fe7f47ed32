package main

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"example.org/pilotfish/internal/cli"
)

type reportCommand struct {
	Results []string `arg:"" type:"path" help:"Results that simulate has saved with --json; several are shown together."`
	HTML    string   `name:"html" type:"path" placeholder:"FILE" help:"Write a report with figures."`
	Figures string   `type:"path" placeholder:"DIR" help:"Write each figure to a file of its own."`
}

func (c *reportCommand) Run(s cli.Console) error {
	var all []results
	for _, path := range c.Results {
		r, err := readResults(path)
		if err != nil {
			return err
		}
		all = append(all, r)
	}
	r := merge(all)
	if err := r.writeText(s.Out); err != nil {
		return err
	}
	return r.draw(c.HTML, c.Figures)
}

// draw writes the page and the directory of figures that are wanted.
func (r *results) draw(page, figures string) error {
	if page != "" {
		if err := create(page, r.writeHTML); err != nil {
			return err
		}
	}
	if figures != "" {
		return r.writeFigures(figures)
	}
	return nil
}

// create writes a file whole.
func create(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	out := bufio.NewWriter(f)
	if err := write(out); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return f.Close()
}
