package main

import (
	"time"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/lab/prompts"
	"example.org/pilotfish/lab/trace"
)

type promptsCommand struct {
	Trace   string        `arg:"" optional:"" type:"existingfile" help:"The requests: a trace of Mooncake's. Without one, an hour of invented chats."`
	From    time.Duration `default:"20m" help:"Measure from here on; what comes before warms the caches."`
	Until   time.Duration `default:"1h" help:"Play up to here."`
	Spread  time.Duration `default:"3s" help:"How coarse the trace's times are: a request comes at a random instant of so long a time."`
	Servers int           `default:"8" placeholder:"N" help:"How many model servers there are."`
	Blocks  []int         `sep:"," placeholder:"N" help:"How many blocks of 512 tokens each of them keeps: 2000 and 6000. Repeat for more, as with load and routers."`
	Loads   []float64     `name:"load" placeholder:"SHARE" help:"Tokens that come for each token that the servers can read, although some need not be read: 0.6, 0.8 and 1."`
	Routers []int         `sep:"," placeholder:"N" help:"How many routers there are."`
	Rules   []string      `name:"rule" placeholder:"NAME" help:"Compare only these, with the first; repeat for more."`
	Seeds   int           `default:"3" placeholder:"N" help:"Play each so often."`
	parallel
}

func (c *promptsCommand) Run(console cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	parallel, err := c.jobs()
	if err != nil {
		return err
	}
	set := prompts.Comparison{
		From: c.From.Seconds(), Until: c.Until.Seconds(), Servers: c.Servers, Blocks: c.Blocks, Loads: c.Loads,
		Routers: c.Routers, Rules: c.Rules, Spread: c.Spread, Seeds: c.Seeds,
	}
	set.SetDefaults()
	if c.Trace == "" {
		set.Jobs = prompts.Invent(1)
	} else if requests, err := trace.Prompts(c.Trace); err != nil {
		return err
	} else {
		set.Jobs = prompts.Read(requests)
	}
	return set.WriteText(ctx, console.Out, parallel)
}
