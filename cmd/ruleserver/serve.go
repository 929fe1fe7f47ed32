package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/ruleserver"
)

// serve takes jobs until a signal or a notice, and then finishes those that it has.
func serve(f flags, stdout, stderr io.Writer) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)

	log, err := newLogger(stderr, f.LogLevel)
	if err != nil {
		return fmt.Errorf("--log-level: %w", err)
	}
	root, err := os.OpenRoot(f.Feeds) // no link leads out of it
	if err != nil {
		return fmt.Errorf("--feeds: %w", err)
	}
	defer root.Close()
	config := f.config()
	config.Feeds = root.FS()
	config.OnJob = func(r ruleserver.Record) { logJob(log, r) }
	server, err := ruleserver.New(config)
	if err != nil {
		return err
	}
	defer server.Close()

	listener, err := net.Listen("tcp", f.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is taken: choose another address with --listen", f.Listen)
	}
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	notice := newPreemption(f.Notice)
	web := &http.Server{
		Handler:           f.handler(server, notice),
		ReadHeaderTimeout: 10 * time.Second, // bodies and answers have bounds of their own
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          zap.NewStdLog(log),
	}
	defer func() { _ = web.Close() }()
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	fmt.Fprintf(stdout, "ruleserver: listening on http://%s with %d cores\n", listener.Addr(), f.Cores)

	entry, err := f.enter(listener.Addr(), log)
	if err != nil {
		return err
	}
	defer entry.leave()
	select {
	case err := <-failed:
		return err
	case s := <-signals:
		log.Info("draining", zap.Stringer("signal", s), zap.Duration("grace", f.Grace))
		entry.drain(time.Time{})
		return drain(server, web, f.Grace, signals)
	case stopsAt := <-notice.given:
		log.Info("pre-empted", zap.Time("stops_at", stopsAt))
		entry.drain(stopsAt)
		return outlast(server, web, stopsAt, signals)
	}
}

// handler is what the port serves.
func (f flags) handler(server *ruleserver.Server, notice preemption) http.Handler {
	if !f.Preemptible {
		return server.Handler()
	}
	mux := http.NewServeMux()
	mux.Handle("/", server.Handler())
	mux.Handle("POST /v1/preempt", notice)
	return mux
}
