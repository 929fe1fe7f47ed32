package main

import (
	"crypto/rand"
	"path/filepath"
	"time"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/lab/replay"
	"example.org/pilotfish/internal/lab/scenario"
	"example.org/pilotfish/internal/report"
)

type replayCommand struct {
	Trace       string        `arg:"" type:"existingfile" help:"The trace, as generate writes it."`
	Target      []string      `required:"" sep:"none" placeholder:"URL" help:"Where to send jobs, as http://host:port; repeat for more sidecars: a job's submitter chooses."`
	Speed       float64       `default:"1" placeholder:"N" help:"Let time pass this many times as fast: offsets, costs and timeouts are divided by it (${default})."`
	Jobs        int           `default:"100000" placeholder:"N" help:"Send so many at most (${default})."`
	Within      time.Duration `default:"1h" help:"Cut what is not over by then (${default})."`
	Feeds       string        `type:"existingdir" placeholder:"DIR" help:"Put a feed of one item there for each project without one, for reference servers on this machine."`
	Capture     string        `type:"path" placeholder:"FILE" help:"Write the trace with what was measured of each job."`
	AllowRemote bool          `help:"Let targets be other machines than this one."`
}

func (c *replayCommand) Run(console cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	if err := cli.CheckDirectory(filepath.Dir(c.Capture)); err != nil {
		return err
	}
	if c.Feeds != "" {
		if err := c.writeFeeds(); err != nil {
			return err
		}
	}
	in, err := scenario.OpenTrace(c.Trace, -1)
	if err != nil {
		return err
	}
	defer in.Close()
	var seen replay.Summary
	ended := replay.Run(ctx, replay.Config{
		Source: in, Targets: c.Target, AllowRemote: c.AllowRemote, Observe: seen.Add, Hint: report.ParseHint,
		Name: rand.Text(), Speed: c.Speed, Jobs: c.Jobs, Within: c.Within,
	})
	if seen.Jobs() == 0 {
		return ended
	}
	// What was measured is shown, whatever ended the replay.
	if err := seen.WriteText(console.Out); err != nil {
		return err
	}
	if c.Capture != "" {
		if err := cli.WriteFile(c.Capture, seen.WriteCapture); err != nil {
			return err
		}
	}
	return ended
}

// writeFeeds makes feeds for the jobs that are sent.
func (c *replayCommand) writeFeeds() error {
	in, err := scenario.OpenTrace(c.Trace, c.Jobs)
	if err != nil {
		return err
	}
	defer in.Close()
	return replay.WriteFeeds(c.Feeds, in)
}
