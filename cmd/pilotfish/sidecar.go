package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/discovery"
	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/logging"
	"example.org/pilotfish/internal/memory"
	"example.org/pilotfish/internal/mesh"
	"example.org/pilotfish/internal/metrics"
	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/internal/report"
	"example.org/pilotfish/internal/tracing"
)

// version is set by the linker when a release is built.
var version = "devel"

// sidecar is the whole program, put together. What lives as long as the
// process is here; what a reload replaces is in generation, and the pool's rules.
type sidecar struct {
	self     []string      // addresses of its own ports
	first    config.Config // the configuration at the start: a reload does not replace all of it
	log      *logging.Log
	jobs     *logging.Jobs
	journal  *logging.Journal
	served   *served
	started  time.Time
	metrics  *metrics.Metrics
	balancer *balancer.Balancer
	memory   *memory.Memory

	stopping atomic.Bool
	open     atomic.Int64 // requests on the job port

	reloading sync.Mutex // one reload at a time

	mu      sync.Mutex // guards changes of the generation
	current atomic.Pointer[generation]
	serving atomic.Pointer[servers] // nil before Run
	running context.Context         // of Run; nil before
}

// generation is what a reload replaces as a whole: how jobs are read and
// attempted, who is asked for upstreams, and who for reports of them.
type generation struct {
	cfg       config.Config
	guard     proxy.Guard // of the admin port
	proxy     *proxy.Proxy
	mesh      *mesh.Filter
	bodies    int64 // bytes that bodies may take
	budget    *intake.Budget
	discovery *discovery.Discovery
	reports   report.Source
	tracing   *tracing.Tracer // nil traces nothing
	dial      files.Dial      // connects to upstreams
	tls       *files.TLS      // that dial uses; nil without upstream_tls
	reader    *intake.Reader  // of jobs
	stop      func()          // ends and joins what start began
}

// servers are what serves the ports.
type servers struct {
	jobs, admin *proxy.Server
	mesh        *mesh.Server
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

// browserCheck is the admin port's, by the settings of the current generation.
func (s *sidecar) browserCheck(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.current.Load().guard.Wrap(next).ServeHTTP(w, r)
	})
}

// newRand is a random source of its own, seeded by the system.
func newRand() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }
