package main

import (
	"fmt"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/config"
)

type checkCommand struct {
	Config string `required:"" type:"path" placeholder:"FILE" help:"The configuration file."`
}

func (c *checkCommand) Run(s cli.Console) error {
	cfg, err := config.Load(c.Config)
	if err == nil {
		err = buildable(&cfg)
	}
	if err != nil {
		fmt.Fprintln(s.Err, err)
		return cli.ErrReported
	}
	_, err = fmt.Fprintf(s.Out, "%s: ok\n", c.Config)
	return err
}
