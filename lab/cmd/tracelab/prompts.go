package main

import (
	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/lab/prompts"
	"example.org/pilotfish/lab/trace"
)

type promptsCommand struct {
	Trace string `arg:"" optional:"" type:"existingfile" help:"An hour of requests: a trace of Mooncake's. Without one, an hour of invented chats."`
}

func (c *promptsCommand) Run(console cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	requests := prompts.Invent(1)
	if c.Trace != "" {
		var err error
		if requests, err = trace.Prompts(c.Trace); err != nil {
			return err
		}
	}
	return prompts.Compare(requests).WriteText(ctx, console.Out)
}
