package ruleserver

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"example.org/pilotfish/internal/ruleserver/executor"
)

// Server is a rule processing server without its listener.
type Server struct {
	config   Config
	feeds    feeds
	executor *executor.Executor
	gate     *gate
	listing  *listing
	metrics  *metrics
	registry *prometheus.Registry
}

// New makes a server; close it when done.
func New(c Config) (*Server, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("ruleserver: %w", err)
	}
	e, err := executor.New(executor.Config{Cores: c.Cores, CacheBytes: c.CacheBytes})
	if err != nil {
		return nil, fmt.Errorf("ruleserver: %w", err)
	}
	s := &Server{
		config:   c,
		feeds:    feeds{files: c.Feeds, maxBytes: c.MaxFeed},
		executor: e,
		gate:     newGate(c.MaxJobs),
		listing:  newListing(e, time.Now()),
		registry: prometheus.NewRegistry(),
	}
	s.metrics = newMetrics(s.registry, s.load)
	return s, nil
}

// Handler serves the whole HTTP interface.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/jobs", s.serveJob)
	mux.HandleFunc("POST /v1/prefetch", s.servePrefetch)
	mux.Handle("GET /v1/cache/projects", s.listing)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", s.serveHealth)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	return mux
}

// load is what the server says of itself.
func (s *Server) load() executor.Load {
	load := s.executor.Load()
	if s.config.AdjustLoad != nil {
		s.config.AdjustLoad(&load)
	}
	return load
}

func (s *Server) serveHealth(w http.ResponseWriter, _ *http.Request) {
	if s.Draining() {
		http.Error(w, "draining", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// Drain makes the server refuse new jobs, with an answer that lets them be
// retried elsewhere, and report itself unhealthy. Jobs that are in go on. It
// cannot be undone.
func (s *Server) Drain() { s.gate.drain() }

// Draining says whether Drain was called.
func (s *Server) Draining() bool { return s.gate.isDraining() }

// Wait blocks until a draining server has answered its last job, or ctx ends
// before that.
func (s *Server) Wait(ctx context.Context) error {
	select {
	case <-s.gate.empty:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-s.gate.empty:
		return nil
	default:
		return ctx.Err()
	}
}

// Warm makes the cache hold the data of these projects and nothing else, the
// first one the oldest, as if each had just been fetched.
func (s *Server) Warm(projects ...string) error {
	var results []executor.Cached
	for _, project := range projects {
		version, err := s.feeds.version(project)
		if err != nil {
			return err
		}
		feed, err := s.feeds.read(project, version)
		if err != nil {
			return err
		}
		results = append(results, executor.Cached{
			Key:    executor.Key{Kind: executor.FeedSource, Project: project, Version: version},
			Result: feedResult(feed),
		})
	}
	s.executor.ReplaceCache(results)
	return nil
}

// Close fails the jobs that are in and ends all that runs.
func (s *Server) Close() {
	s.Drain()
	s.executor.Close()
}
