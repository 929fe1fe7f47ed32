package main

import (
	"fmt"
	"strings"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/config"
)

type checkCommand struct {
	File  string `arg:"" placeholder:"FILE" help:"The configuration file."`
	Print bool   `help:"Print the effective configuration: the file over the defaults, without passwords."`
}

func (c *checkCommand) Run(s cli.Console) error {
	cfg, warnings, err := config.Load(c.File)
	for _, w := range warnings {
		fmt.Fprintln(s.Err, cli.Plain(w.Error()))
	}
	if err == nil {
		err = buildable(&cfg)
	}
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintln(s.Err, cli.Plain(line))
		}
		return cli.ErrReported
	}
	if !c.Print {
		_, err = fmt.Fprintf(s.Out, "%s: ok\n", c.File)
		return err
	}
	_, err = s.Out.Write(cli.Encode(&cfg))
	return err
}
