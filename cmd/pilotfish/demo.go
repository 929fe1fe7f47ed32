package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/internal/ruleserver/example"
)

type demoCommand struct {
	Once   bool   `help:"End after the table."`
	Listen string `default:"${listen}" placeholder:"HOST:PORT" help:"Where the sidecar takes jobs (${default})."`
	Admin  string `default:"${admin}" placeholder:"HOST:PORT" help:"Where operators look (${default})."`
}

// demoUpstreams is how many rule processing servers the demo starts.
const demoUpstreams = 4

func (c *demoCommand) Run(s cli.Console) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	jobs, err := listen(c.Listen, "--listen", false)
	if err != nil {
		return err
	}
	defer jobs.Close()
	admins, err := listen(c.Admin, "--admin", false)
	if err != nil {
		return err
	}
	defer admins.Close()
	upstreams, stop, err := startUpstreams()
	if err != nil {
		return err
	}
	defer stop()

	cfg := config.Default()
	cfg.Listen, cfg.Admin = jobs.Addr().String(), admins.Addr().String()
	cfg.Discovery.Static = upstreams
	cfg.Stream.ExplainHeaders = true
	cfg.Shutdown.Grace = 5 * time.Second
	log, level, err := newLogger(s.Err, "warn")
	if err != nil {
		return err
	}
	defer log.Sync() //nolint:errcheck // nobody is left to tell
	side, err := newSidecar(&cfg, []string{cfg.Listen, cfg.Admin}, log, level)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "%d rule processing servers: %s\n", len(upstreams), strings.Join(upstreams, " "))
	fmt.Fprintf(s.Out, "sidecar: jobs on http://%s, metrics on http://%s/metrics\nlook at: http://%s/\n\n", cfg.Listen, cfg.Admin, cfg.Admin)

	running, end := context.WithCancel(ctx)
	defer end()
	ended := make(chan error, 1)
	go func() { ended <- side.Run(running, ports{jobs: jobs, admin: admins}) }()
	if err := c.submit(ctx, s.Out, cfg.Listen); err != nil {
		end()
		return errors.Join(err, <-ended)
	}
	if c.Once {
		end()
		return <-ended
	}
	var load sync.WaitGroup
	defer func() { end(); load.Wait() }()
	load.Go(func() { keepBusy(running, cfg.Listen) })
	fmt.Fprintf(s.Out, "\nStill serving, with a little load: look at http://%s/ in a browser.\n", cfg.Admin)
	fmt.Fprintf(s.Out, "Or try:\n  curl -i -H 'Content-Type: application/json' -H 'Accept: text/csv' --data @internal/ruleserver/example/job.json http://%s/v1/jobs\n", cfg.Listen)
	fmt.Fprintf(s.Out, "  curl 'http://%s/api/pick?project=12345&priority=low'\nCtrl-C ends it.\n", cfg.Admin)
	return <-ended
}

// startUpstreams starts the servers on free loopback ports.
func startUpstreams() (addresses []string, stop func(), err error) {
	var closers []func()
	stop = func() {
		for _, c := range closers {
			c()
		}
	}
	settings := ruleserver.Defaults()
	settings.TrustCost = true // of the jobs that keep the page alive
	for range demoUpstreams {
		server, err := ruleserver.New(ruleserver.Config{Settings: settings, Feeds: example.AnyFeeds()})
		if err != nil {
			stop()
			return nil, nil, err
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			stop()
			return nil, nil, err
		}
		h := &http.Server{Handler: server.Handler(), ReadHeaderTimeout: 10 * time.Second}
		go func() { _ = h.Serve(l) }() // ends with Close
		closers = append(closers, func() { _ = h.Close(); server.Close() })
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, stop, nil
}

// submit posts the example job as a submitter would, and shows what came back.
func (c *demoCommand) submit(ctx context.Context, out io.Writer, address string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/jobs", strings.NewReader(example.Job()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/csv")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
		return fmt.Errorf("the job was answered %s: %s", resp.Status, text)
	}
	h := resp.Header
	fmt.Fprintf(out, "job of project 12345, priority high\n  upstream: %s\n  cache:    %s\n  why:      %s\n\n",
		h.Get("Pilotfish-Upstream"), h.Get("Pilotfish-Cache"), h.Get("Pilotfish-Why"))
	return printTable(out, resp.Body)
}

// printTable shows CSV in columns.
func printTable(out io.Writer, body io.Reader) error {
	rows, err := csv.NewReader(body).ReadAll()
	if err != nil {
		return fmt.Errorf("the answer is not CSV: %w", err)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}
