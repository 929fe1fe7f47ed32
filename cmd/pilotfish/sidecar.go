package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/capture"
	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/logging"
	"example.org/pilotfish/internal/mesh"
	"example.org/pilotfish/internal/metrics"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/prewarm"
	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/internal/statefile"
)

// sidecar is the whole program, put together. What lives as long as the
// process is here; what a reload replaces is in generation, and the pool's rules.
type sidecar struct {
	self     []string      // host:port of its own ports
	first    config.Config // the configuration at the start: a reload does not replace all of it
	log      *logging.Log
	jobs     *logging.Jobs
	journal  *logging.Journal
	served   *served
	console  *console
	capture  *capture.Capture
	metrics  *metrics.Metrics
	balancer *balancer.Balancer
	prewarm  *prewarm.Prewarmer
	heads    *proxy.Heads // that arrive on the job port

	stopping atomic.Bool
	open     atomic.Int64 // requests on the job port

	reloading sync.Mutex // one reload at a time

	mu      sync.Mutex // guards changes of the generation
	current atomic.Pointer[generation]
	serving atomic.Pointer[servers] // nil before Run
	running context.Context         // of Run; nil before
}

// newSidecar builds everything; nothing runs yet. self is where the sidecar will be
// reached, so that it never sends a job to itself.
func newSidecar(cfg *config.Config, self []string, log *logging.Log) (*sidecar, error) {
	s := &sidecar{self: self, first: *cfg, log: log, jobs: logging.NewJobs(log), journal: logging.NewJournal(log.Logger), served: newServed(log.Logger),
		heads: proxy.NewHeads(int64(cfg.Submitters.Heads))}
	s.metrics = metrics.New(version)
	s.console = newConsole(s)
	var err error
	if s.balancer, err = s.newBalancer(cfg); err != nil {
		return nil, err
	}
	statefile.Restore(cfg.State, s.balancer, log.Logger)
	s.prewarm, err = prewarm.New(prewarm.Config{
		Settings: cfg.Prewarm, Busiest: s.console.busiest, Successor: s.balancer.Successor, Observe: s.logPrefetch,
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: s.dialUpstream}, // one request a second to an upstream at most
	})
	if err != nil {
		return nil, err
	}
	s.capture, err = capture.New(capture.Config{Settings: cfg.Capture, Failed: func(err error) {
		s.log.Warn("jobs are missing from the capture", zap.Error(err))
	}})
	if err != nil {
		return nil, err
	}
	g, err := s.newGeneration(cfg, nil)
	if err != nil {
		return nil, err
	}
	s.current.Store(g)
	s.metrics.SetSource(s.live)
	return s, nil
}

// newBalancer builds the pool with its breakers, the dispatcher, and the lock around them.
func (s *sidecar) newBalancer(cfg *config.Config) (*balancer.Balancer, error) {
	settings, err := poolSettings(cfg)
	if err != nil {
		return nil, err
	}
	breakers, err := breaker.New(breaker.Config{Settings: cfg.Breaker, Rand: newRand()})
	if err != nil {
		return nil, err
	}
	p, err := pool.New(pool.Config{Settings: settings, Breakers: breakers, Rand: newRand(), Explain: true})
	if err != nil {
		return nil, err
	}
	d, err := dispatch.New(dispatch.Config{Pool: p, Rand: newRand(), Retry: cfg.Retry, Queue: cfg.Queue, Projects: cfg.Projects, SecondThoughts: cfg.SecondThoughts})
	if err != nil {
		return nil, err
	}
	return balancer.New(d, balancer.Hooks{
		Queued:   s.metrics.QueueEntered,
		Left:     s.metrics.QueueLeft,
		Picked:   s.metrics.Picked,
		Answered: s.served.began,
		Ask:      s.ask,
		Moved:    s.metrics.JobMoved,
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

// ServeHTTP takes one request on the job port.
func (s *sidecar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.stopping.Load() {
		w.Header().Set("Connection", "close") // the next job belongs to the next process
	}
	s.open.Add(1)
	defer s.open.Add(-1)
	s.current.Load().proxy.ServeHTTP(w, r)
}

// filter takes one request that Envoy shows on the mesh port.
func (s *sidecar) filter() (f *mesh.Filter, done func()) {
	s.open.Add(1)
	return s.current.Load().mesh, func() { s.open.Add(-1) }
}

// admin builds what the admin port serves.
func (s *sidecar) admin(from *source) (http.Handler, error) {
	var reload func() ([]string, error)
	if from != nil {
		reload = func() ([]string, error) { return s.reloadFrom(from) }
	}
	return admin.New(admin.Config{
		Metrics:      s.metrics.Handler(),
		Pool:         drained{s.balancer, s.log.Logger},
		Quality:      s.served,
		Console:      s.console,
		Reload:       reload,
		Write:        func() bool { return s.current.Load().cfg.AdminWrite },
		Ready:        s.ready,
		BrowserCheck: s.browserCheck,
		Pprof:        func() bool { return s.current.Load().cfg.Debug.Pprof },
		Token:        func() (string, bool, error) { return adminToken(&s.current.Load().cfg) },
	})
}

// drained logs what an operator does by hand.
type drained struct {
	*balancer.Balancer
	log *zap.Logger
}

func (d drained) Drain(address string, on bool) bool {
	known := d.Balancer.Drain(address, on)
	switch {
	case !known:
	case on:
		d.log.Info("an operator drains the upstream: it gets no new jobs", zap.String("upstream", address))
	default:
		d.log.Info("an operator lets the upstream take jobs again", zap.String("upstream", address))
	}
	return known
}

// browserCheck is the admin port's, by the settings of the current generation.
func (s *sidecar) browserCheck(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.current.Load().guard.Wrap(next).ServeHTTP(w, r)
	})
}

func (s *sidecar) ready() error {
	switch {
	case s.stopping.Load():
		return errors.New("shutting down")
	case !s.balancer.Ready():
		return errors.New("no upstreams are known yet")
	}
	return nil
}

// newRand is a random source of its own, seeded by the system.
func newRand() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }
