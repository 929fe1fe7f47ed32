package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/lab/replay"
	"example.org/pilotfish/internal/report"
	"example.org/pilotfish/pkg/trace"
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

func (c *replayCommand) Run(s cli.Console) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends at once
	if c.Capture != "" {
		// Better now than after the replay.
		if _, err := os.Stat(filepath.Dir(c.Capture)); err != nil {
			return err
		}
	}
	if c.Feeds != "" {
		if err := c.writeFeeds(); err != nil {
			return err
		}
	}
	in, err := openTrace(c.Trace, -1)
	if err != nil {
		return err
	}
	defer in.Close()
	var seen replayed
	err = replay.Run(ctx, replay.Config{
		Source: in, Targets: c.Target, AllowRemote: c.AllowRemote, Observe: seen.add, Hint: report.ParseHint,
		Name: rand.Text(), Speed: c.Speed, Jobs: c.Jobs, Within: c.Within,
	})
	if len(seen.jobs) == 0 {
		return err
	}
	// What was measured is shown, whatever ended it.
	if e := seen.writeText(s.Out); e != nil {
		return e
	}
	if c.Capture != "" {
		if e := create(c.Capture, seen.writeCapture); e != nil {
			return e
		}
	}
	if errors.Is(err, context.Canceled) {
		return cli.ErrInterrupted
	}
	return err
}

// writeFeeds makes the least feed for each project that has none.
func (c *replayCommand) writeFeeds() error {
	in, err := openTrace(c.Trace, c.Jobs)
	if err != nil {
		return err
	}
	defer in.Close()
	root, err := os.OpenRoot(c.Feeds) // a project's name leads nowhere else
	if err != nil {
		return err
	}
	defer root.Close()
	for {
		job, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := writeFeed(root, job.Project); err != nil {
			return err
		}
	}
}

func writeFeed(root *os.Root, project trace.Project) error {
	if project == "" {
		return nil
	}
	f, err := root.OpenFile(string(project)+".csv", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--feeds: %w", err)
	}
	defer f.Close()
	if _, err := io.WriteString(f, "id\n1\n"); err != nil {
		return err
	}
	return f.Close()
}
