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
	"go.uber.org/zap/zapcore"

	"example.org/pilotfish/internal/ruleserver"
)

// serve takes jobs until a signal or a notice, then finishes the open ones.
func serve(f *flags, stdout, stderr io.Writer) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)

	log, err := newLogger(stderr, f.LogLevel)
	if err != nil {
		return fmt.Errorf("--log-level: %w", err)
	}
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

	listener, err := listen(f.Listen)
	if err != nil {
		return err
	}
	notice := newPreemption(f.Notice)
	web := &http.Server{
		Handler:           f.handler(server, notice),
		ReadHeaderTimeout: 10 * time.Second, // bodies and responses have timeouts of their own
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          zap.NewStdLog(log),
	}
	defer func() { _ = web.Close() }()
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	fmt.Fprintf(stdout, "ruleserver: listening on http://%s with %d cores\n", listener.Addr(), f.Server.Cores)

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

func listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is taken: choose another address with --listen", address)
	}
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	return listener, nil
}

// handler serves the job port.
func (f *flags) handler(server *ruleserver.Server, notice preemption) http.Handler {
	if !f.Preemptible {
		return server.Handler()
	}
	mux := http.NewServeMux()
	mux.Handle("/", server.Handler())
	mux.Handle("POST /v1/preempt", ruleserver.LocalOnly(notice))
	return mux
}

// newLogger writes JSON lines, so that no input can forge a line.
func newLogger(w io.Writer, level string) (*zap.Logger, error) {
	least, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, err
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.ISO8601TimeEncoder
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(encoding), zapcore.Lock(zapcore.AddSync(w)), least)), nil
}

// logJob writes the one line of a job.
func logJob(log *zap.Logger, r ruleserver.Record) {
	what := "job"
	if r.Prefetch {
		what = "prefetch"
	}
	line := log.Check(zap.InfoLevel, what)
	if line == nil {
		return
	}
	line.Write(
		zap.String("session", r.Session), zap.String("project", r.Project), zap.String("priority", r.Priority),
		zap.String("outcome", string(r.Outcome)), zap.Int("status", r.Status), zap.Bool("cached", r.Facts.Cached),
		zap.Float64("wait_seconds", r.Facts.Wait.Seconds()), zap.Float64("execution_seconds", r.Facts.Execution.Seconds()),
		zap.Float64("fetch_seconds", r.Facts.Fetch.Seconds()), zap.Float64("total_seconds", r.Total.Seconds()),
		zap.Int64("bytes", r.Bytes), zap.Error(r.Err),
	)
}
