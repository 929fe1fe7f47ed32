package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/report"
	"example.org/pilotfish/lab/figures"
	"example.org/pilotfish/lab/replay"
	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/stats"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

type replayCommand struct {
	Log    []string      `arg:"" type:"existingfile" help:"Access logs in any format that whatif reads."`
	To     []string      `required:"" placeholder:"URL" help:"Target of the jobs, as http://127.0.0.1:8080. Each of several targets gets all jobs, one target after the other."`
	Bodies []string      `type:"existingfile" placeholder:"FILE" help:"Files of recorded bodies (log.bodies). Without them, each job is sent with its costs from the log, for servers with --trust-cost."`
	Speed  float64       `default:"1" placeholder:"N" help:"Speed-up: 2 sends the jobs in half of the time."`
	Jobs   int           `default:"100000" placeholder:"N" help:"Maximum number of jobs to send."`
	HTML   string        `name:"html" type:"path" placeholder:"FILE" help:"Write an HTML page with figures."`
	Limit  time.Duration `default:"1h" help:"Maximum time to wait for responses after the last job was sent."`
}

// sent is the results of one target.
type sent struct {
	target  string
	run     stats.Run
	results []replay.Result

	failed, late, hits, known float64
}

func (c *replayCommand) Run(console cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	if !(c.Speed > 0 && c.Speed <= 1e6) || c.Jobs < 1 || c.Limit <= 0 {
		return errors.New("--speed must be above 0 and at most 1000000; --jobs and --limit must be above 0")
	}
	for i, to := range c.To {
		if u, err := url.Parse(to); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
			return fmt.Errorf("--to %q is not like http://127.0.0.1:8080", to)
		}
		c.To[i] = strings.TrimSuffix(to, "/")
	}
	cfg, close, err := c.config(console.Err)
	if err != nil {
		return err
	}
	defer close() //nolint:errcheck // the files were only read
	var all []*sent
	for _, to := range c.To {
		s, err := send(ctx, cfg, to)
		if err != nil {
			return err
		}
		all = append(all, s)
	}
	if err := writePage(c.HTML, func(w io.Writer) error { return pageOf(strings.Join(c.Log, ", "), all).WriteHTML(w) }); err != nil {
		return err
	}
	return writeSent(console.Out, all)
}

// pageOf returns the figures of a replay.
func pageOf(title string, all []*sent) *figures.Page {
	page := &figures.Page{Title: title}
	var names []string
	var runs []stats.Run
	for _, s := range all {
		names, runs = append(names, s.target), append(runs, s.run)
		run := figures.Run{Name: s.target}
		for i := range s.results {
			r := &s.results[i]
			whole := 0.0
			if r.OK() {
				whole = 1
			} else if r.Err != nil && r.Status/100 == 2 {
				whole = 0.5
			}
			run.Jobs.Add(r.Job.Offset, r.FirstByte, r.LastByte, whole)
		}
		run.Jobs.Sort()
		page.Runs = append(page.Runs, run)
	}
	page.Bars = figures.Quantities(names, runs)
	return page
}

// config returns the replay of the log without its target. The caller must call close after the replay.
func (c *replayCommand) config(notes io.Writer) (cfg replay.Config, close func() error, err error) {
	logs, err := trace.ReadLogs(c.Jobs, nil, c.Log...)
	if err != nil {
		return cfg, nil, err
	}
	fmt.Fprintln(notes, strings.Join(logs.Notes, "\n"))
	span, close := logs.Span(), func() error { return nil }
	if len(c.Bodies) == 0 {
		logs.Estimate(0, 0)
	}
	jobs, ids := logs.Identified()
	if len(c.Bodies) > 0 {
		bodies, err := replay.OpenBodies(c.Bodies...)
		if err != nil {
			return cfg, nil, err
		}
		close = bodies.Close
		var kept []int
		if cfg.Recordings, kept = bodies.Recordings(ids); len(kept) < len(jobs) {
			fmt.Fprintf(notes, "%d of %d jobs have no recorded body and are left out\n", len(jobs)-len(kept), len(jobs))
		}
		if len(kept) == 0 {
			return cfg, nil, errors.Join(errors.New("no job of the log has a recorded body: do the files cover the same time?"), close())
		}
		jobs = trace.Only(jobs, kept)
	}
	for i := range jobs {
		jobs[i].Offset /= c.Speed
	}
	cfg.Jobs, cfg.Limit = jobs, trace.Duration(span/c.Speed)+c.Limit
	return cfg, close, nil
}

// send sends all jobs to one target. A failed job counts as having waited for the simulator's queue timeout.
func send(ctx context.Context, cfg replay.Config, to string) (*sent, error) {
	cfg.Targets = []string{to}
	results, err := replay.Run(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s := &sent{target: to, run: stats.NewRun(), results: results}
	names, late := report.Default(), stats.NewDistribution()
	for i := range results {
		r := &results[i]
		late.Add(r.Late)
		if !r.OK() {
			s.failed++
			s.run.Add(r.Job.Priority, max(r.LastByte, sim.DefaultSidecars().Wait.Seconds()), 0)
			continue
		}
		wait := r.FirstByte
		hint, hintErr := names.Hint(r.Header, time.Now())
		if hintErr == nil && hint.Waited >= 0 {
			wait = min(r.LastByte, r.Late+hint.Waited.Seconds())
		}
		if hintErr == nil && hint.Known {
			s.known++
			if hint.Cached {
				s.hits++
			}
		}
		s.run.Add(r.Job.Priority, wait, r.LastByte-wait)
	}
	s.late = late.Summary().P99
	return s, nil
}

// writeSent writes the thesis's tables 4, 5 and 7, and the ratio of each target to the first one.
func writeSent(w io.Writer, all []*sent) error {
	counts := &stats.Grid{Left: 1, Heads: [][]string{{"target", "jobs", "failed", "hits", "sent late, p99 s"}}}
	for _, s := range all {
		hits := "-"
		if s.known > 0 {
			hits = fmt.Sprintf("%.1f %%", 100*s.hits/s.known)
		}
		counts.Rows = append(counts.Rows, []string{s.target, stats.Thousands(len(s.results)), stats.Thousands(int(s.failed)), hits, fmt.Sprintf("%.3f", s.late)})
	}
	err := counts.WriteText(w)
	for _, q := range stats.Quantities() {
		g := &stats.Grid{Left: 1, Heads: [][]string{{string(q)}, {"target"}}}
		ratios := [][]string{}
		for n, s := range all {
			row, ratio := []string{s.target}, []string{s.target + " / " + all[0].target}
			for _, p := range []selection.Priority{selection.High, selection.Low} {
				if n == 0 {
					g.Heads[0] = append(g.Heads[0], p.String(), "", "", "", "", "")
					g.Heads[1] = append(g.Heads[1], stats.Columns()...)
				}
				of, first := s.run.Summary(p, q), all[0].run.Summary(p, q).Numbers()
				for i, v := range of.Numbers() {
					cell, over := "-", "-"
					if of.Count > 0 {
						cell = fmt.Sprintf("%.3f", v)
					}
					if of.Count > 0 && first[i] > 0 {
						over = fmt.Sprintf("%.2f", v/first[i])
					}
					row, ratio = append(row, cell), append(ratio, over)
				}
			}
			if g.Rows = append(g.Rows, row); n > 0 {
				ratios = append(ratios, ratio)
			}
		}
		g.Rows = append(g.Rows, ratios...)
		err = errors.Join(err, g.WriteText(w))
	}
	return err
}
