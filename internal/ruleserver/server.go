// Package ruleserver is the reference rule processing server: the upstream that
// pilotfish is tested and measured with. It follows section 3 of the thesis: a job
// fetches its project's product data, applies rules to it and streams the result
// back. The joblets of all jobs share a number of cores and a cache.
//
// Package rules has the rules, package executor the cores and the cache. This
// package is the HTTP interface over both.
package ruleserver

import (
	"fmt"
	"io/fs"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"example.org/pilotfish/internal/ruleserver/executor"
	"example.org/pilotfish/internal/ruleserver/rules"
	"example.org/pilotfish/internal/settings"
)

// Config is the configuration of a Server.
type Config struct {
	Settings Settings

	// Feeds has a file PROJECT.csv for each project. The modification time of a file is
	// the version of its data: when it changes, the project is fetched again.
	Feeds fs.FS

	// OnJob is called with the record of each job after its end, from
	// several goroutines. It may be nil.
	OnJob func(Record)
	// OnJoblet is called with the record of each joblet after its end, from several
	// goroutines. It may be nil.
	OnJoblet func(executor.JobletRecord)
	// AdjustLoad may change the load that the server reports, in both metrics and
	// hints. It is for fakes, and may be nil.
	AdjustLoad func(*executor.Load)
}

// Server is a rule processing server without its listener.
type Server struct {
	config   Config
	feeds    feeds
	executor *executor.Executor
	open     chan struct{} // has a value for each accepted job
	ids      sync.Map      // by ID, the open jobs that have one: *executor.Job
	draining atomic.Bool   // it accepts no new jobs
	fault    atomic.Value  // a faultMode; nil is none
	born     time.Time     // part of the listing's ETag, so that it differs after a restart
	metrics  *metrics
	registry *prometheus.Registry
}

// New makes a server. The caller closes it.
func New(c Config) (*Server, error) {
	var wrong settings.Faults
	c.Settings.Check(&wrong)
	if c.Feeds == nil {
		wrong.Add("feeds", "there are none")
	}
	if err := wrong.Err(); err != nil {
		return nil, fmt.Errorf("ruleserver: %w", err)
	}
	s := &Server{
		config:   c,
		feeds:    feeds{files: c.Feeds, maxBytes: int64(c.Settings.MaxFeed)},
		executor: executor.New(c.Settings.Cores, int64(c.Settings.CacheBytes), c.OnJoblet),
		open:     make(chan struct{}, c.Settings.MaxJobs),
		born:     time.Now(),
		registry: prometheus.NewRegistry(),
	}
	s.metrics = newMetrics(s.registry, s.load, s.executor.Statistics)
	return s, nil
}

const listingPath, loadPath, metricsPath, prefetchPath = "/v1/cache/projects", "/v1/load", "/metrics", "/v1/prefetch"

// Handler serves the HTTP interface: jobs, metrics, listing and health.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/jobs", s.serve)
	mux.HandleFunc("DELETE /v1/jobs/{id}", s.withdraw)
	mux.HandleFunc("POST "+prefetchPath, s.serve)
	mux.HandleFunc("GET "+listingPath, s.serveListing)
	mux.HandleFunc("GET "+loadPath, s.serveLoad)
	mux.Handle("GET "+metricsPath, promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if s.draining.Load() {
			http.Error(w, "draining", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	if s.config.Settings.Faults {
		return s.withFaults(mux)
	}
	return mux
}

// Drain makes the server unhealthy and lets it refuse new jobs, with a response that
// says that they may be sent elsewhere. Open jobs continue. It cannot be undone.
func (s *Server) Drain() { s.draining.Store(true) }

// Drained reports whether the server drains and has no open job.
func (s *Server) Drained() bool { return s.draining.Load() && len(s.open) == 0 }

// Warm fills the cache with the data of these projects and nothing else, the first
// one as the oldest, as if each had just been fetched.
func (s *Server) Warm(projects ...string) error {
	var results []executor.Cached
	for _, project := range projects {
		version, err := s.feeds.version(rules.Project(project))
		if err != nil {
			return err
		}
		feed, err := s.feeds.read(rules.Project(project))
		if err != nil {
			return err
		}
		key := executor.Key{Kind: executor.FeedSource, Project: project, Version: version}
		results = append(results, executor.Cached{Key: key, Result: feedResult(feed)})
	}
	s.executor.ReplaceCache(results)
	return nil
}

// Close fails the open jobs and ends the joblets that run.
func (s *Server) Close() {
	s.Drain()
	s.executor.Close()
}
