package main

import (
	"fmt"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/config"
)

type checkCommand struct {
	File  string `arg:"" placeholder:"FILE" help:"The configuration file; - reads standard input."`
	Print bool   `help:"Print the effective configuration: the file over the defaults, without passwords."`
}

func (c *checkCommand) Run(s cli.Console) error {
	d, err := c.document(s)
	if err != nil {
		return err
	}
	cfg, warnings, err := config.Parse(d)
	for _, w := range warnings {
		fmt.Fprintln(s.Err, w)
	}
	if err == nil {
		err = buildable(&cfg)
	}
	if err != nil {
		fmt.Fprintln(s.Err, err)
		return cli.ErrReported
	}
	if c.Print {
		text, err := cli.Encode(&cfg)
		if err != nil {
			return err
		}
		_, err = s.Out.Write(text)
		return err
	}
	_, err = fmt.Fprintf(s.Out, "%s: ok\n", d.Name())
	return err
}

func (c *checkCommand) document(s cli.Console) (cli.Document, error) {
	if c.File == "-" {
		return cli.Read("standard input", s.In)
	}
	return cli.Open(c.File)
}
