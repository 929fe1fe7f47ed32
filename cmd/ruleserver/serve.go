package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/internal/ruleserver/executor"
)

// serve serves jobs until a signal, then finishes the open ones.
func serve(f *flags, stdout, stderr io.Writer) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)

	lines := slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: f.LogLevel}) // JSON, so that no input can forge a line
	log := slog.New(lines)
	root, err := os.OpenRoot(f.Feeds) // a root refuses links that lead out of the folder
	if err != nil {
		return fmt.Errorf("--feeds: %w", err)
	}
	defer root.Close()
	server, err := ruleserver.New(ruleserver.Config{
		Settings: f.Server, Feeds: root.FS(),
		OnJob:    func(r ruleserver.Record) { logJob(log, r) },
		OnJoblet: func(r executor.JobletRecord) { logJoblet(log, r) },
	})
	if err != nil {
		return err
	}
	defer server.Close()

	listener, err := net.Listen("tcp", f.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	web := &http.Server{
		Handler:           server.Handler(),
		ReadHeaderTimeout: 10 * time.Second, // bodies and responses have other timeouts
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(lines, slog.LevelWarn),
	}
	defer func() { _ = web.Close() }()
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	fmt.Fprintf(stdout, "ruleserver: listening on http://%s with %d cores\n", listener.Addr(), f.Server.Cores)

	if f.Consul.Agent != "" {
		registration, err := newRegistration(f.Consul, listener.Addr(), f.Server.Cores, time.Now(), server, log)
		if err != nil {
			return err
		}
		ctx, end := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { registration.run(ctx) })
		defer running.Wait()
		defer end()
	}
	select {
	case err := <-failed:
		return err
	case s := <-signals:
		end := time.Now().Add(f.Grace)
		log.Info("draining", "signal", s.String(), "ends_at", end)
		server.Drain()
		return finish(server, web, end, signals)
	}
}

// finish waits for the open jobs of a draining server. Until they end, the socket stays
// open, so that a new job gets a response that permits a retry elsewhere.
func finish(server *ruleserver.Server, web *http.Server, end time.Time, signals <-chan os.Signal) error {
	for !server.Drained() {
		if time.Now().After(end) {
			return fmt.Errorf("jobs were still running at %s, and were aborted", end.Format(time.TimeOnly))
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case s := <-signals:
			return fmt.Errorf("stopped by a second signal: %v", s)
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()
	_ = web.Shutdown(ctx) // all responses are sent, so this is quick
	return nil
}

// logJob logs a job.
func logJob(log *slog.Logger, r ruleserver.Record) {
	message := "job"
	if r.Prefetch {
		message = "prefetch"
	}
	log.Info(message, "session", r.Session, "project", r.Project, "priority", r.Priority, "outcome", r.Outcome, "status", r.Status,
		"cached", r.Facts.Cached, "wait_seconds", r.Facts.Wait.Seconds(), "execution_seconds", r.Facts.Execution.Seconds(),
		"fetch_seconds", r.Facts.Fetch.Seconds(), "total_seconds", r.Total.Seconds(), "bytes", r.Bytes, "error", r.Err)
}

// logJoblet logs a joblet at level debug.
func logJoblet(log *slog.Logger, r executor.JobletRecord) {
	log.Debug("joblet", "kind", r.Key.Kind.String(), "project", r.Key.Project, "queue_seconds", r.Queue.Seconds(), "run_seconds", r.Run.Seconds(),
		"cores", r.Cores, "bytes", r.Bytes, "jobs", r.Jobs, "error", r.Err)
}
