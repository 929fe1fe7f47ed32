package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/discovery"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/logging"
	"example.org/pilotfish/internal/memory"
	"example.org/pilotfish/internal/mesh"
	"example.org/pilotfish/internal/metrics"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/internal/report"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/internal/tracing"
)

// version is set by the linker when a release is built.
var version = "devel"

// sidecar is the whole program. It has everything that exists as long as the
// process; generation and the pool's settings have what a reload replaces.
type sidecar struct {
	self     []string      // addresses of its own ports
	first    config.Config // the configuration at the start, for keys that a reload does not change
	from     source        // of the configuration for reloads
	log      *logging.Log
	written  *logging.Bodies // recorded bodies; nil records none
	journal  *logging.Journal
	served   *served
	started  time.Time
	planned  *bool // whether the process before this one ended in order; nil is not known
	metrics  *metrics.Metrics
	balancer *balancer.Balancer
	memory   *memory.Memory
	budget   *intake.Budget  // of the bodies of all jobs
	tracing  *tracing.Tracer // nil without tracing
	servers  servers
	shown    *files.TLS // the mesh port's certificate from files; nil without

	stopping atomic.Bool
	open     atomic.Int64 // requests on the job port

	mu      sync.Mutex // held while the generation is replaced
	current atomic.Pointer[generation]
	running context.Context // of Run; nil before
}

// generation is what a reload replaces as a whole: the proxy, the mesh filter, discovery, and the
// polling of reports.
type generation struct {
	cfg       config.Config
	proxy     *proxy.Proxy
	mesh      *mesh.Filter
	discovery *discovery.Discovery
	reports   *report.Source
	tls       *files.TLS     // for connections to upstreams; nil without upstream_tls
	reader    *intake.Reader // of jobs
	jobs      job.Config
	stop      func() // stops what startGeneration started, and waits for it
}

// ServeHTTP serves one request on the job port.
func (s *sidecar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.open.Add(1)
	defer s.open.Add(-1)
	s.current.Load().proxy.ServeHTTP(w, r)
}

// filter returns the filter for one of Envoy's requests on the mesh port.
func (s *sidecar) filter() (f *mesh.Filter, done func()) {
	s.open.Add(1)
	return s.current.Load().mesh, func() { s.open.Add(-1) }
}

// browserCheck is the admin port's browser check, with the settings of the current generation.
func (s *sidecar) browserCheck(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxy.NewGuard(s.current.Load().cfg.Hosts).Wrap(next).ServeHTTP(w, r)
	})
}

// newRand returns a new random source, seeded by the system.
func newRand() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }

// newSidecar builds everything; nothing runs yet. self are the sidecar's own
// addresses, so that it never sends a job to itself.
func newSidecar(cfg *config.Config, self []string, from source, log *logging.Log) (*sidecar, error) {
	s := &sidecar{
		self: self, first: *cfg, from: from, log: log, journal: logging.NewJournal(log.Logger),
		served: newServed(log.Logger), memory: memory.New(), started: time.Now(),
	}
	s.written = logging.NewBodies(cfg.Log, func(err error) {
		log.Error("bodies are no longer written to log.bodies", zap.Error(err))
	})
	s.metrics = metrics.New(cfg.Metrics, version, cli.Commit())
	s.budget = intake.NewBudget(s.bodies(cfg))
	var err error
	if s.balancer, err = s.newBalancer(cfg); err != nil {
		return nil, err
	}
	if s.tracing, err = tracing.New(cfg.Tracing, version, func(err error) {
		log.Warn("spans are lost: the collector does not take them", zap.String("endpoint", cfg.Tracing.Endpoint), zap.Error(err))
	}); err != nil {
		return nil, err
	}
	g, err := s.newGeneration(cfg, nil)
	if err != nil {
		return nil, err
	}
	s.current.Store(g)
	if s.servers, err = s.newServers(); err != nil {
		return nil, err
	}
	s.metrics.SetSource(s.live)
	return s, nil
}

// newBalancer builds the pool with its breakers, the dispatcher, and the lock around them.
func (s *sidecar) newBalancer(cfg *config.Config) (*balancer.Balancer, error) {
	settings, err := poolSettings(cfg)
	if err != nil {
		return nil, err
	}
	p, err := pool.New(pool.Config{Settings: settings, Gate: breaker.New, Rand: newRand()})
	if err != nil {
		return nil, err
	}
	d, err := dispatch.New(dispatch.Config{Pool: p, Rand: newRand(), Retry: cfg.Retry, Queue: s.queue(cfg), Projects: cfg.Projects})
	if err != nil {
		return nil, err
	}
	return balancer.New(d, balancer.Hooks{
		Queued:   s.metrics.QueueEntered,
		Left:     s.metrics.QueueLeft,
		Answered: s.served.began,
		Probe: func(ctx context.Context, addresses []string, project string, timeout time.Duration) []*pool.Hint {
			return s.current.Load().reports.Probe(ctx, addresses, project, timeout)
		},
		Withdraw: func(address, id string) bool {
			g := s.current.Load()
			accepted := g.reports.Withdraw(address, g.cfg.Job.WithdrawPath, id)
			s.metrics.Withdrawn(accepted)
			return accepted
		},
		Ask: func(address string) { s.current.Load().reports.Ask(address) },
		Joined: func(addresses []string) {
			s.metrics.Joined(addresses)
			s.log.Info("upstreams joined", zap.Strings("upstreams", addresses))
		},
		Gone: func(addresses []string) {
			s.metrics.Left(addresses)
			s.log.Info("upstreams left", zap.Strings("upstreams", addresses))
		},
	}), nil
}

// Limits of the admin port: the number of connections, and the idle timeout.
const (
	adminConns = 256
	adminIdle  = 10 * time.Second
)

// servers are the servers of the ports.
type servers struct {
	jobs, admin *proxy.Server
	mesh        *mesh.Server
}

func (s *sidecar) newServers() (all servers, err error) {
	errorLog, _ := zap.NewStdLogAt(s.log.Quiet, zap.WarnLevel) // it fails only for unknown levels
	if all.jobs, err = proxy.NewServer(s, proxy.ServerConfig{
		Conns: s.first.Submitters.Connections, Budget: s.budget, ErrorLog: errorLog,
	}); err != nil {
		return all, err
	}
	shown, err := s.meshCertificate()
	if err != nil {
		return all, err
	}
	all.mesh = mesh.NewServer(mesh.ServerConfig{
		Filter: s.filter, Ready: s.refusal, Budget: s.budget, Streams: s.first.Submitters.Connections, Certificate: shown, ErrorLog: errorLog,
	})
	all.admin, err = proxy.NewServer(s.admin(), proxy.ServerConfig{ErrorLog: errorLog, Conns: adminConns, IdleTimeout: adminIdle, Unframed: true})
	return all, err
}

// meshCertificate returns the source of the mesh port's certificate; nil without TLS.
func (s *sidecar) meshCertificate() (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	switch s.first.Mesh.TLS {
	case "":
		return nil, nil
	case mesh.SelfSigned:
		own, err := files.SelfSigned(time.Now())
		return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own, nil }, err
	}
	var err error
	s.shown, err = s.newTLS("mesh.tls", s.first.Mesh.Files())
	return s.shown.Certificate, err
}

// admin returns the handler of the admin port.
func (s *sidecar) admin() http.Handler {
	return admin.New(admin.Config{
		Metrics: s.metrics.Handler(),
		Now:     s.now,
		Points:  s.points,
		About:   s.about,
		Events:  s.events,
		Describe: func(body io.Reader, length int64) (intake.Facts, error) {
			return s.current.Load().describe(body, length, s.budget)
		},
		Explain:      s.balancer.Explain,
		Drain:        s.drainByHand,
		Reload:       s.reread,
		Write:        func() bool { return s.current.Load().cfg.AdminWrite },
		BrowserCheck: s.browserCheck,
		TokenFile:    func() string { return s.current.Load().cfg.AdminTokenFile },
	})
}

// describe reads the body of a job that is not submitted. The body counts in the budget while it is read.
func (g *generation) describe(body io.Reader, length int64, budget *intake.Budget) (intake.Facts, error) {
	kept, err := intake.ReadBody(body, length, int64(g.cfg.Job.MaxBody), budget)
	if err != nil {
		return intake.Facts{}, err
	}
	defer kept.Release()
	if !kept.Whole() {
		return intake.Facts{}, intake.ErrNoRoom
	}
	d, err := g.reader.Describe(intake.Head{Method: http.MethodPost, Path: "/"}, kept.Bytes(), true)
	if err == nil && d.Unread != "" {
		err = errors.New(d.Unread)
	}
	g.jobs.Tokenize(&d.Facts, kept.Bytes())
	return d.Facts, err
}

// drainByHand starts or ends an operator's drain, and logs it.
func (s *sidecar) drainByHand(address string, on bool) (known bool) {
	what := map[bool]string{true: "an operator drains the upstream: it gets no new jobs", false: "an operator lets the upstream take jobs again"}
	if form, err := settings.Address(address); err == nil {
		address = form
	}
	if known = s.balancer.Drain(address, on); known {
		s.log.Info(what[on], zap.String("upstream", address))
	}
	return known
}

// buildable returns errors of a configuration that are found only by building the sidecar.
func buildable(cfg *config.Config) error {
	log, err := logging.New(io.Discard, cfg.Log.Level)
	if err != nil {
		return err
	}
	own := slices.DeleteFunc([]string{cfg.Listen, cfg.Admin}, func(address string) bool {
		return strings.HasSuffix(address, ":0") // the port is not known yet
	})
	_, err = newSidecar(cfg, own, source{}, log)
	return err
}
