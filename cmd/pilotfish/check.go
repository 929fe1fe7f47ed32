package main

import (
	"fmt"

	"pilotfish/internal/config"
)

type checkCommand struct {
	Config string `required:"" type:"path" placeholder:"FILE" help:"The configuration file."`
}

func (c *checkCommand) Run(s streams) error {
	cfg, err := config.Load(c.Config)
	if err == nil {
		err = buildable(&cfg)
	}
	if err != nil {
		fmt.Fprintln(s.err, err)
		return errReported
	}
	_, err = fmt.Fprintf(s.out, "%s: ok\n", c.Config)
	return err
}
