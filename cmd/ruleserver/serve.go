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
	"example.org/pilotfish/internal/ruleserver/registration"
)

// serve takes jobs until a signal, then finishes the open ones.
func serve(f *flags, stdout, stderr io.Writer) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)

	lines := slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: f.LogLevel}) // no input can forge a line
	log := slog.New(lines)
	root, err := os.OpenRoot(f.Feeds) // refuses links that lead out of the directory
	if err != nil {
		return fmt.Errorf("--feeds: %w", err)
	}
	defer root.Close()
	server, err := ruleserver.New(ruleserver.Config{
		Settings: f.Server, Feeds: root.FS(),
		OnJob: func(r ruleserver.Record) { logJob(log, r) },
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
		ReadHeaderTimeout: 10 * time.Second, // bodies and responses have timeouts of their own
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(lines, slog.LevelWarn),
	}
	defer func() { _ = web.Close() }()
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	fmt.Fprintf(stdout, "ruleserver: listening on http://%s with %d cores\n", listener.Addr(), f.Server.Cores)

	drain, leave, err := f.register(listener.Addr(), log)
	if err != nil {
		return err
	}
	defer leave()
	select {
	case err := <-failed:
		return err
	case s := <-signals:
		end := time.Now().Add(f.Grace)
		log.Info("draining", "signal", s.String(), "ends_at", end)
		drain()
		server.Drain()
		return finish(server, web, end, signals)
	}
}

// register puts the server into Consul's catalogue, if there is one. drain registers
// that it takes no new jobs.
func (f *flags) register(address net.Addr, log *slog.Logger) (drain, leave func(), err error) {
	if f.Consul == "" {
		return func() {}, func() {}, nil
	}
	entry := registration.Server{Service: f.Service, Address: address.String(), Cores: f.Server.Cores, StartedAt: time.Now()}
	r, err := registration.New(f.Consul, entry, nil)
	if err != nil {
		return nil, nil, err
	}
	observe := func(err error) {
		if err != nil {
			log.Warn("registration", "error", err)
			return
		}
		log.Info("registered", "service", f.Service, "address", address.String())
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx, observe) })
	drain = func() { observe(r.Drain(ctx)) }
	leave = func() {
		stop()
		running.Wait()
		if err := r.Leave(context.Background()); err != nil {
			observe(err)
		}
	}
	return drain, leave, nil
}

// finish lets the open jobs of a draining server finish. Until then the socket stays
// open, so that a new job gets a response that says that it may be sent elsewhere.
func finish(server *ruleserver.Server, web *http.Server, end time.Time, signals <-chan os.Signal) error {
	ctx, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()
	select {
	case <-server.Drained():
	case <-ctx.Done():
	case s := <-signals:
		return fmt.Errorf("ended at once by a second signal: %v", s)
	}
	select {
	case <-server.Drained():
		_ = web.Shutdown(ctx) // responses are out, so there is little to wait for
		return nil
	default:
		return fmt.Errorf("jobs were still running at %s, and were cut", end.Format(time.TimeOnly))
	}
}

// logJob writes the one line of a job.
func logJob(log *slog.Logger, r ruleserver.Record) {
	log.Info("job", "session", r.Session, "project", r.Project, "priority", r.Priority, "outcome", r.Outcome, "status", r.Status,
		"cached", r.Facts.Cached, "wait_seconds", r.Facts.Wait.Seconds(), "execution_seconds", r.Facts.Execution.Seconds(),
		"fetch_seconds", r.Facts.Fetch.Seconds(), "total_seconds", r.Total.Seconds(), "bytes", r.Bytes, "error", r.Err)
}
