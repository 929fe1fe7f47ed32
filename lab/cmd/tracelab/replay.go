package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/report"
	"example.org/pilotfish/lab/replay"
	"example.org/pilotfish/lab/trace"
)

type replayCommand struct {
	Trace []string `arg:"" type:"existingfile" help:"The trace, as generate writes it, or the logs of sidecars."`
	replay.Settings
	Feeds string `type:"existingdir" placeholder:"DIR" help:"Put a feed of one item there for each project without one, for reference servers on this machine."`
}

func (c *replayCommand) Run(console cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	file, err := trace.Open(c.Trace...)
	if err != nil {
		return err
	}
	printNotes(console.Err, file.Notes)
	if c.Feeds != "" {
		if err := c.writeFeeds(file); err != nil {
			return err
		}
	}
	in, err := file.Jobs(-1)
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
	return errors.Join(seen.WriteText(console.Out), ended) // what was measured is shown, whatever ended the replay
}

// writeFeeds makes feeds for the jobs that are sent.
func (c *replayCommand) writeFeeds(file *trace.File) error {
	in, err := file.Jobs(c.Jobs)
	if err != nil {
		return err
	}
	defer in.Close()
	return replay.WriteFeeds(c.Feeds, in)
}

// printNotes says what was found in logs, and what is missing there.
func printNotes(to io.Writer, notes []string) {
	for _, note := range notes {
		fmt.Fprintln(to, note)
	}
}
