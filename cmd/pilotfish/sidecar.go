package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/discovery"
	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/logging"
	"example.org/pilotfish/internal/memory"
	"example.org/pilotfish/internal/mesh"
	"example.org/pilotfish/internal/metrics"
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
	running context.Context             // of Run; nil before
	refused atomic.Pointer[refusedFile] // nil while the last configuration that was read is in force
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

// source is where a reload gets its configuration; the zero source has none.
type source struct {
	read  func() (config.Config, []*cli.Error, error)
	path  string // "": no file
	first []byte // the file's content at the start
}

// servers are the servers of the ports.
type servers struct {
	jobs, admin *proxy.Server
	mesh        *mesh.Server
}
