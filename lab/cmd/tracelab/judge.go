package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/lab/judge"
)

type judgeCommand struct {
	Root string `type:"path" default:"." placeholder:"DIR" help:"The repository, whose sources are judged."`
	Save string `type:"existingdir" placeholder:"DIR" help:"Save the table there as judge.txt, and add its summary to judgings.txt."`
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
	if c.Save != "" {
		if err := save(c.Save, j); err != nil {
			return err
		}
	}
	return j.WriteText(console.Out)
}

// save writes the table, and adds a line to the list of all judgings. The list only grows.
func save(dir string, j *judge.Judgement) error {
	var table bytes.Buffer
	if err := j.WriteText(&table); err != nil {
		return err
	}
	list := filepath.Join(dir, "judgings.txt")
	text, err := os.ReadFile(list)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if !strings.HasSuffix(string(text), j.Line()) { // else it is the same again
		text = append(text, j.Line()...)
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "judge.txt"), table.Bytes(), 0o644), os.WriteFile(list, text, 0o644))
}
