package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/metrics"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/prewarm"
	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/internal/record"
)

// sidecar is the whole program, put together. What lives as long as the
// process is here; what a reload replaces is in generation, and the pool's rules.
type sidecar struct {
	own      []string      // host:port of its ports
	first    config.Config // what a reload does not replace is as it says
	log      *zap.Logger
	jobs     jobLog
	level    zap.AtomicLevel
	metrics  *metrics.Metrics
	balancer *balancer.Balancer
	prewarm  *prewarm.Prewarmer
	stopping atomic.Bool
	open     atomic.Int64 // requests on the job port
	journal  *journal

	mu      sync.Mutex // guards changes of the generation
	current atomic.Pointer[generation]
	running context.Context // of Run; nil before
}

// newSidecar builds everything; nothing runs yet. own is where it will be
// reached, which is nowhere to send a job.
func newSidecar(cfg *config.Config, own []string, log *zap.Logger, level zap.AtomicLevel) (*sidecar, error) {
	s := &sidecar{own: own, first: *cfg, log: log, jobs: jobLog{log: log}, journal: newJournal(log), level: level}
	s.metrics = metrics.New(version)
	var err error
	if s.balancer, err = s.newBalancer(cfg); err != nil {
		return nil, err
	}
	s.prewarm, err = prewarm.New(prewarm.Config{Settings: cfg.Prewarm, Successor: s.balancer.Successor, Observe: s.logPrefetch})
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
	d, err := dispatch.New(dispatch.Config{Pool: p, Rand: newRand(), Retry: cfg.Retry, Queue: cfg.Queue})
	if err != nil {
		return nil, err
	}
	return balancer.New(d, balancer.Hooks{
		Queued: s.metrics.QueueEntered,
		Left:   s.metrics.QueueLeft,
		Picked: s.metrics.Picked,
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

// admin builds what the admin port serves.
func (s *sidecar) admin() (http.Handler, error) {
	return admin.New(admin.Config{
		Metrics:      s.metrics.Handler(),
		Pool:         s.balancer,
		Ready:        s.ready,
		BrowserCheck: s.browserCheck,
		Pprof:        s.first.Debug.Pprof,
	})
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

// parting is how long a process that ends still takes jobs on the connections
// that it has accepted. http.Server.Shutdown alone would close those whose
// request is still on its way.
const parting = 500 * time.Millisecond

// Run serves both ports until ctx ends, and then lets the accepted jobs
// finish within the grace time.
func (s *sidecar) Run(ctx context.Context, jobs, admins net.Listener) error {
	handler, err := s.admin()
	if err != nil {
		return err
	}
	errorLog, err := zap.NewStdLogAt(s.log, zap.WarnLevel)
	if err != nil {
		return err
	}
	jobServer, err := proxy.NewServer(s, proxy.ServerConfig{ErrorLog: errorLog})
	if err != nil {
		return err
	}
	adminServer, err := proxy.NewServer(handler, proxy.ServerConfig{ErrorLog: errorLog, Conns: 64})
	if err != nil {
		return err
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { s.balancer.Run(background) })
	wg.Go(func() { s.journal.run(background, s.balancer.States) })
	wg.Go(func() { s.prewarm.Run(background) })
	s.start(background)
	defer s.stop()

	failed := make(chan error, 2)
	wg.Go(func() { failed <- jobServer.Serve(jobs) })
	wg.Go(func() { failed <- adminServer.Serve(admins) })
	notify(s.log, daemon.SdNotifyReady)
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	s.stopping.Store(true)
	notify(s.log, daemon.SdNotifyStopping)
	end := s.current.Load().cfg.Shutdown.Grace
	s.log.Info("shutting down", zap.Duration("grace", end), zap.Int64("jobs_left", s.open.Load()))
	s.leave(jobs, admins)
	grace, done := context.WithTimeout(background, end)
	defer done()
	wg.Go(func() { s.logDrain(grace) })
	err = errors.Join(err, jobServer.Shutdown(grace))
	done()
	short, done := context.WithTimeout(background, time.Second)
	defer done()
	_ = adminServer.Shutdown(short) // a scraper that hangs keeps nobody
	return err
}

// leave turns new connections to the next process, where there is one, and
// gives the jobs of those accepted the time to arrive.
func (s *sidecar) leave(ports ...net.Listener) {
	for _, p := range ports {
		if l, ok := p.(leaver); ok {
			if err := l.Leave(); err != nil {
				s.log.Warn("connections under way may be lost", zap.Stringer("port", p.Addr()), zap.Error(err))
			}
		}
	}
	time.Sleep(parting)
}

// logDrain tells every ten seconds how many jobs are left, until ctx ends.
func (s *sidecar) logDrain(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Second):
			s.log.Info("draining", zap.Int64("jobs_left", s.open.Load()))
		}
	}
}

// observe turns a job's record into its log line and its metrics.
func (s *sidecar) observe(r *record.Job) {
	s.metrics.JobDone(r.Facts.Priority, r.Read, r.Outcome, r.Completeness, r.TTFB, r.Total)
	if r.Outcome == intake.Shed {
		s.metrics.JobShed(r.Facts.Priority, r.Shedding)
	}
	if r.RetryRefused {
		s.metrics.RetryRefused()
	}
	if r.Unkept {
		s.metrics.ReplayDisabled()
	}
	for i := range r.Attempts {
		s.metrics.AttemptDone(r.Attempts[i].Outcome)
	}
	if n := len(r.Attempts); n > 0 && r.Outcome == intake.Answered {
		s.prewarm.Note(r.Attempts[n-1].Upstream, r.Facts.Key, r.Facts.Project)
	}
	s.journal.ended(r)
	s.jobs.write(s.current.Load().cfg.Log, r)
}

// live is what a scrape shows of the moment.
func (s *sidecar) live(now time.Time) metrics.Live {
	g := s.current.Load()
	d := g.discovery.Status()
	live := metrics.Live{
		Upstreams: s.balancer.States(),
		BodyBytes: g.budget.Used(),
		Discovery: metrics.Discovery{Age: -1, Applied: d.Applied, Refused: d.Refused, Failed: d.Failed},
	}
	if !d.BelievedAt.IsZero() {
		live.Discovery.Age = now.Sub(d.BelievedAt)
	}
	return live
}

// newRand is a random source of its own, seeded by the system.
func newRand() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }
