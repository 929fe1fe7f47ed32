package main

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"example.org/pilotfish/internal/capacity"
	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/lab/page"
	"example.org/pilotfish/internal/lab/scenario"
)

type capacityCommand struct {
	Trace     string        `arg:"" type:"path" help:"A trace, or a sidecar's capture."`
	Upstreams int           `placeholder:"N" help:"How many upstreams there are; of a capture, by default those that answered."`
	Cores     int           `placeholder:"N" help:"The cores of each."`
	FirstByte time.Duration `placeholder:"TIME" help:"The longest time to first byte of the median job."`
	JSON      bool          `name:"json" help:"Write the advice as JSON."`
}

func (c *capacityCommand) Run(console cli.Console) error {
	if c.Upstreams < 0 || c.Cores < 1 || c.FirstByte <= 0 {
		return errors.New("--upstreams, --cores and --first-byte must be positive")
	}
	d, err := scenario.ReadDemand(c.Trace)
	if err != nil {
		return err
	}
	fleet := capacity.Fleet{Upstreams: cmp.Or(c.Upstreams, d.Upstreams)}
	if fleet.Upstreams == 0 {
		return fmt.Errorf("%s names no upstream: say with --upstreams how many there are", c.Trace)
	}
	fleet.Cores = float64(fleet.Upstreams * c.Cores)
	advice, err := capacity.Advise(d.Load, fleet, capacity.Bound{FirstByte: c.FirstByte, Unloaded: d.Unloaded})
	if err != nil {
		return fmt.Errorf("%s: %w", c.Trace, err)
	}
	return page.Advice(console.Out, advice, c.JSON)
}
