package main

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"example.org/pilotfish/internal/ruleserver"
)

// newLogger writes JSON lines, so that no input can forge one.
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
