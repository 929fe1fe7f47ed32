package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/discovery"
	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/logging"
	"example.org/pilotfish/internal/ports"
)

type serveCommand struct {
	Config         string   `type:"path" placeholder:"FILE" help:"Configuration file; SIGHUP reloads it."`
	Upstream       []string `placeholder:"HOST:PORT" help:"An upstream; repeat for more. Replaces the file's discovery."`
	Listen         string   `placeholder:"HOST:PORT" help:"Address for jobs, or unix:PATH; default 127.0.0.1:8080."`
	Admin          string   `placeholder:"HOST:PORT" help:"Address of the admin port, or unix:PATH; default 127.0.0.1:9180."`
	ReusePort      bool     `help:"Share the ports with the next process (SO_REUSEPORT)."`
	ExplainHeaders bool     `help:"Add headers that explain the decision to each response."`
}

// load reads the file, if there is one, and applies the flags.
func (c *serveCommand) load() (config.Config, []*cli.Error, error) {
	if c.Config == "" && len(c.Upstream) == 0 {
		return config.Config{}, nil, errors.New("no upstreams: name them with --upstream HOST:PORT, or a file with --config")
	}
	if c.Config == "" {
		return config.Parse(cli.Document{}, c.given()...)
	}
	return config.Load(c.Config, c.given()...)
}

// given returns the flags on the command line.
func (c *serveCommand) given() []config.Flag {
	return []config.Flag{
		{Name: "--upstream", Key: "discovery", Given: len(c.Upstream) > 0, Set: func(cfg *config.Config) {
			cfg.Discovery = discovery.Default()
			cfg.Discovery.Static = c.Upstream
		}},
		{Name: "--listen", Key: "listen", Given: c.Listen != "", Set: func(cfg *config.Config) { cfg.Listen = c.Listen }},
		{Name: "--admin", Key: "admin", Given: c.Admin != "", Set: func(cfg *config.Config) { cfg.Admin = c.Admin }},
		{Name: "--reuse-port", Key: "reuse_port", Given: c.ReusePort, Set: func(cfg *config.Config) { cfg.ReusePort = true }},
		{Name: "--explain-headers", Key: "stream.explain_headers", Given: c.ExplainHeaders, Set: func(cfg *config.Config) { cfg.Stream.ExplainHeaders = true }},
	}
}

func (c *serveCommand) Run(s cli.Console) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP) // first: until then, it ends the process
	defer signal.Stop(hup)
	signal.Ignore(syscall.SIGPIPE) // keep serving jobs after the log's reader has gone
	served, err := ports.Activated()
	if err != nil {
		return err
	}
	defer served.Close()
	c.use(served)
	before, _ := files.Read(c.Config, cli.MaxFile) // load will report an error
	cfg, warnings, err := c.load()
	if err != nil {
		return err
	}
	log, err := logging.New(s.Err, cfg.Log.Level)
	if err != nil {
		return err
	}
	defer log.Sync() //nolint:errcheck // there is no other log
	log.CaptureLibraries()
	warn(log.Logger, warnings)
	var descriptors syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &descriptors); err == nil {
		checkDescriptors(log.Logger, descriptors.Cur, cfg.Submitters.Connections)
	}
	if err := served.Open(portsOf(&cfg)); err != nil {
		return err
	}
	side, err := newSidecar(&cfg, served.Addresses(), source{read: c.load, path: c.Config, first: before}, log)
	if err != nil {
		return err
	}
	defer side.written.Sync()       //nolint:errcheck // recorded bodies are not essential
	stop := make(chan os.Signal, 2) // until here, a signal ends the process, even if its start hangs
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(stop)
	var mark marker
	if side.planned, err = mark.begin(os.Getenv("STATE_DIRECTORY")); err != nil {
		log.Warn("whether restarts are planned will not be known", zap.Error(err))
	}
	mesh := zap.Skip()
	if served.Mesh != nil {
		mesh = zap.Stringer("mesh", served.Mesh.Addr())
	}
	log.Info("serving", zap.String("version", cli.Version(version)), zap.Int("pid", os.Getpid()), zap.String("configuration", c.Config),
		zap.Stringer("jobs", served.Jobs.Addr()), zap.Stringer("admin", served.Admin.Addr()), mesh,
		zap.String("selection", cfg.Selection.Policy), zap.String("overload", cfg.Overload.Policy))
	if err := side.runUntilSignal(served, stop, hup); err != nil {
		log.Error("ended before its jobs", zap.Error(err))
		return cli.ErrReported // do not write it to standard error again, which could block
	}
	return mark.end()
}

// spareDescriptors is the number of file descriptors for anything but jobs: ports, requests to the admin port, and polls.
const spareDescriptors = 100

// checkDescriptors logs a warning if this process may open too few files: a job has a connection to its submitter, and one to its
// upstream. Idle submitters could leave none for upstreams.
func checkDescriptors(log *zap.Logger, limit uint64, connections int) {
	if needed := 2*connections + spareDescriptors; limit < uint64(needed) { //nolint:gosec // both are positive
		log.Warn("few file descriptors: many submitters could leave none for connections to upstreams", zap.Uint64("limit", limit), zap.Int("needed", needed))
	}
}

// sameRequest is how long after the first signal further signals count as the same one: timeout(1) and
// other programs send SIGTERM both to the process and to its group.
const sameRequest = time.Second

// stopSignals tracks the received SIGTERM and SIGINT.
type stopSignals struct{ first time.Time }

// receive counts a signal. It reports whether the process must start to drain, and
// whether it must end immediately.
func (s *stopSignals) receive(now time.Time) (drain, end bool) {
	if s.first.IsZero() {
		s.first = now
		return true, false
	}
	return false, now.Sub(s.first) >= sameRequest
}

// runUntilSignal runs the sidecar until a signal to stop, and until its jobs have ended. A second
// signal, at least a second later, ends it immediately. SIGHUP reloads the configuration.
func (s *sidecar) runUntilSignal(p ports.Ports, stop, hup <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // a reload can take long, and must not delay a drain
		for {
			select {
			case <-hup:
				_, _ = s.reread() // it logs what is wrong
			case <-ctx.Done():
				return
			}
		}
	}()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, p) }()
	var received stopSignals
	for {
		select {
		case err := <-ended:
			return err
		case sig := <-stop:
			drain, end := received.receive(time.Now())
			if end {
				return errors.New("stopped by a second signal: " + sig.String())
			}
			if drain {
				s.stopping.Store(true) // first: from now on, responses close their connections
				cancel()
			}
		}
	}
}

// use replaces the configured addresses by those of the ports that systemd has opened.
func (c *serveCommand) use(p ports.Ports) {
	if p.Jobs != nil {
		c.Listen = ports.Address(p.Jobs)
	}
	if p.Admin != nil {
		c.Admin = ports.Address(p.Admin)
	}
}

func portsOf(cfg *config.Config) ports.Config {
	return ports.Config{Jobs: cfg.Listen, Admin: cfg.Admin, Mesh: cfg.Mesh.Listen, Shared: cfg.ReusePort}
}
