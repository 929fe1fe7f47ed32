// Package ruleserver is the reference rule processing server: the upstream that
// pilotfish is tested and measured with. It follows section 3 of the thesis: a job
// fetches its project's product data, applies rules to it and streams the result
// back. The joblets of all jobs share a number of cores and a cache.
//
// Package rules has the rules, package executor the cores and the cache. This
// package is the HTTP interface over both.
package ruleserver

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"example.org/pilotfish/internal/ruleserver/executor"
	"example.org/pilotfish/internal/settings"
)

// Server is a rule processing server without its listener.
type Server struct {
	settings   Settings
	onJob      func(Record)
	adjustLoad func(*executor.Load)
	feeds      feeds
	executor   *executor.Executor
	open       *openJobs
	faults     *faults
	listing    *listing
	metrics    *metrics
	registry   *prometheus.Registry
}

// New makes a server. The caller closes it.
func New(c Config) (*Server, error) {
	var faults settings.Faults
	c.Settings.Check(&faults)
	if c.Feeds == nil {
		faults.Add("feeds", "there are none")
	}
	if err := faults.Err(); err != nil {
		return nil, fmt.Errorf("ruleserver: %w", err)
	}
	e, err := executor.New(executor.Config{Cores: c.Settings.Cores, CacheBytes: int64(c.Settings.CacheBytes)})
	if err != nil {
		return nil, fmt.Errorf("ruleserver: %w", err)
	}
	s := &Server{
		settings:   c.Settings,
		onJob:      c.OnJob,
		adjustLoad: c.AdjustLoad,
		feeds:      feeds{files: c.Feeds, maxBytes: int64(c.Settings.MaxFeed)},
		executor:   e,
		open:       newOpenJobs(c.Settings.MaxJobs),
		faults:     newFaults(),
		listing:    newListing(e, time.Now()),
		registry:   prometheus.NewRegistry(),
	}
	s.metrics = newMetrics(s.registry, s.figures)
	return s, nil
}

const listingPath, metricsPath = "/v1/cache/projects", "/metrics"

// Handler serves the HTTP interface: jobs, prefetches, metrics, listing and health.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/jobs", s.serveJob)
	mux.HandleFunc("POST /v1/prefetch", s.servePrefetch)
	mux.Handle("GET "+listingPath, s.listing)
	mux.Handle("GET "+metricsPath, promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", s.serveHealth)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	if s.settings.Faults {
		return s.withFaults(mux)
	}
	return mux
}

func (s *Server) serveHealth(w http.ResponseWriter, _ *http.Request) {
	if s.Draining() {
		http.Error(w, "draining", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// Drain makes the server unhealthy and lets it refuse new jobs, with a response that
// says that they may be sent elsewhere. Open jobs go on. It cannot be undone.
func (s *Server) Drain() { s.open.drain() }

// Draining reports whether Drain was called.
func (s *Server) Draining() bool { return s.open.isDraining() }

// Wait blocks until a draining server has no open job, or until ctx ends.
func (s *Server) Wait(ctx context.Context) error {
	select {
	case <-s.open.none:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-s.open.none:
		return nil
	default:
		return ctx.Err()
	}
}

// Warm fills the cache with the data of these projects and nothing else, the first
// one as the oldest, as if each had just been fetched.
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

// Close fails the open jobs and ends the joblets that run.
func (s *Server) Close() {
	s.Drain()
	s.faults.set(faultNone, time.Now()) // requests that hang go on, and end
	s.executor.Close()
}

// LocalOnly refuses requests from other machines, and those of web pages that somebody
// reads on this one.
func LocalOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !from.Addr().IsLoopback() || r.Header.Get("Origin") != "" {
			http.Error(w, "this is for programs on the server's own machine", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
