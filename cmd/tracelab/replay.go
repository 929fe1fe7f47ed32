package main

import (
	"crypto/rand"
	"path/filepath"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/lab/replay"
	"example.org/pilotfish/internal/lab/scenario"
	"example.org/pilotfish/internal/report"
)

type replayCommand struct {
	Trace string `arg:"" type:"existingfile" help:"The trace, as generate writes it."`
	replay.Settings
	Feeds   string `type:"existingdir" placeholder:"DIR" help:"Put a feed of one item there for each project without one, for reference servers on this machine."`
	Capture string `type:"path" placeholder:"FILE" help:"Write the trace with what was measured of each job."`
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
		Settings: c.Settings, Source: in, Observe: seen.Add, Hint: report.Default().Hint, Name: rand.Text(),
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
