package main

import (
	"errors"
	"fmt"
	"os"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/lab/judge"
)

type judgeCommand struct {
	Root string `type:"path" default:"." placeholder:"DIR" help:"The repository, whose sources are judged."`
	List string `type:"path" placeholder:"FILE" help:"Add a line that sums it up to this file."`
}

func (c *judgeCommand) Run(console cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	hash, err := judge.Hash(c.Root)
	if err != nil {
		return err
	}
	j, err := judge.Judge(ctx, hash, judge.Families(), func(ended, all int) { fmt.Fprintf(console.Err, "%d/%d settings\n", ended, all) })
	if err != nil {
		return err
	}
	if c.List != "" {
		if err := add(c.List, j.Line()); err != nil {
			return err
		}
	}
	return j.WriteText(console.Out)
}

// add adds a line to a file, which only grows.
func add(file, line string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}
