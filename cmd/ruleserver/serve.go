package main

import (
	"context"
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

	"pilotfish/internal/ruleserver"
)

// serve takes jobs until a signal, and then finishes those that it has.
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
	web := &http.Server{
		Handler:           server.Handler(),
		ReadHeaderTimeout: 10 * time.Second, // bodies and answers have bounds of their own
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          zap.NewStdLog(log),
	}
	defer web.Close()
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	fmt.Fprintf(stdout, "ruleserver: listening on http://%s with %d cores\n", listener.Addr(), f.Cores)

	select {
	case err := <-failed:
		return err
	case s := <-signals:
		log.Info("draining", zap.Stringer("signal", s), zap.Duration("grace", f.Grace))
	}
	return drain(server, web, f.Grace, signals)
}

// drain lets the jobs that are in finish. While they do, the socket stays open,
// so that a new job gets an answer that lets it be retried elsewhere.
func drain(server *ruleserver.Server, web *http.Server, grace time.Duration, signals <-chan os.Signal) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	server.Drain()
	drained := make(chan error, 1)
	go func() {
		if err := server.Wait(ctx); err != nil {
			drained <- fmt.Errorf("jobs were still running %v after the signal, and were cut", grace)
			return
		}
		drained <- web.Shutdown(ctx)
	}()
	select {
	case err := <-drained:
		return err
	case s := <-signals:
		return fmt.Errorf("ended at once by a second signal: %v", s)
	}
}
