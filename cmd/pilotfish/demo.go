package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/demo"
	"example.org/pilotfish/internal/logging"
	"example.org/pilotfish/internal/ports"
)

type demoCommand struct {
	Once   bool   `help:"End after the three jobs."`
	Listen string `placeholder:"HOST:PORT" help:"Address for jobs."`
	Admin  string `placeholder:"HOST:PORT" help:"Address of the admin port."`
}

func (c *demoCommand) Run(s cli.Console) error {
	ctx, stop := cli.Context()
	defer stop()
	var p ports.Ports
	defer p.Close()
	if err := p.Open(ports.Config{Jobs: c.Listen, Admin: c.Admin}); err != nil {
		return fmt.Errorf(`%w. Port 0 is any free port: make demo DEMO="--listen 127.0.0.1:0 --admin 127.0.0.1:0"`, err)
	}
	upstreams, err := demo.StartServers()
	if err != nil {
		return err
	}
	cfg := config.Default()
	cfg.Listen, cfg.Admin = ports.Address(p.Jobs), ports.Address(p.Admin)
	cfg.Discovery.Static = upstreams
	cfg.Selection.Shadow = "least-in-flight" // a load balancer that ignores caches
	cfg.Stream.ExplainHeaders = true
	cfg.Reports.Interval, cfg.Reports.Timeout = time.Second, time.Second
	cfg.Shutdown.Grace = 5 * time.Second
	log, err := logging.New(s.Err, "warn")
	if err != nil {
		return err
	}
	defer log.Sync() //nolint:errcheck // there is no other log
	side, err := newSidecar(&cfg, p.Addresses(), source{}, log)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "%d rule processing servers and one sidecar are running.\n\n", len(upstreams))
	fmt.Fprintf(s.Out, "  submitters post jobs to  http://%s\n  operators look at        http://%s/\n\n", cfg.Listen, cfg.Admin)

	running, end := context.WithCancel(ctx)
	defer end()
	ended := make(chan error, 1)
	go func() { ended <- side.Run(running, p) }()
	shown := &demo.Demo{Out: s.Out, Balancer: side.balancer, Address: cfg.Listen}
	if err = shown.Tour(ctx); ctx.Err() != nil {
		err = nil // Ctrl-C came before its end
	}
	if err != nil || c.Once || ctx.Err() != nil {
		end()
		return errors.Join(err, <-ended)
	}
	go shown.KeepBusy(running, newRand())
	fmt.Fprintf(s.Out, "A little load keeps running now. Ctrl-C ends it.\n\n")
	fmt.Fprintf(s.Out, "  look      http://%s/ in a browser, or: pilotfish top --admin %[1]s\n", cfg.Admin)
	fmt.Fprintf(s.Out, "  see why   curl 'http://%s/api/pick?project=12345&priority=low'\n", cfg.Admin)
	fmt.Fprintf(s.Out, "  post      curl -i -H 'Content-Type: application/json' -H 'Accept: text/csv' --data @internal/ruleserver/example/job.json http://%s/v1/jobs\n", cfg.Listen)
	return <-ended
}
