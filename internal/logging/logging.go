// Package logging writes the log: lines as JSON that are written together, one for each
// job, and one for each change of an upstream.
package logging

import (
	"io"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"example.org/pilotfish/internal/settings"
)

// Settings is the section "log" of a configuration file.
type Settings struct {
	// Level is the least level that is logged: debug, info, warn or error. A job
	// that failed is a warning, any other job is at level info.
	Level string `yaml:"level"`
	// Jobs says which jobs get a line: all; slow, which is those that failed or
	// took at least Slow; failed; or none.
	Jobs string `yaml:"jobs"`
	// Slow is the time from which on a job is slow.
	Slow time.Duration `yaml:"slow"`
	// Share is how many of the jobs that neither failed nor were slow get a line
	// where Jobs is all: 0.01 is each hundredth.
	Share float64 `yaml:"share"`
}

// Which jobs get a line.
const (
	allJobs    = "all"
	slowJobs   = "slow"
	failedJobs = "failed"
	noJobs     = "none"
)

// Default is the settings of an empty file.
func Default() Settings { return Settings{Level: "info", Jobs: allJobs, Slow: time.Minute, Share: 1} }

// Check adds what cannot be used to f.
func (s Settings) Check(f *settings.Faults) {
	f.OneOf("level", s.Level, []string{"debug", "info", "warn", "error"})
	f.OneOf("jobs", s.Jobs, []string{allJobs, slowJobs, failedJobs, noJobs})
	f.Positive("slow", s.Slow)
	if !(s.Share >= 0 && s.Share <= 1) { // in this form it refuses NaN too
		f.Add("share", "%v is not a share from 0 to 1", s.Share)
	}
}

// Log writes lines as JSON, so that no input can forge one. Lines may wait for
// logDelay, but not behind an error; Sync writes what waits.
type Log struct {
	// Logger writes what happens to the program and its upstreams. Jobs writes its many
	// lines without it, in a third of the time.
	*zap.Logger
	// Level is the least level that is written. It may be set at any time.
	Level zap.AtomicLevel

	lines *lineBuffer
}

// New returns a log whose lines go to w.
func New(w io.Writer, level string) (*Log, error) {
	at, err := zap.ParseAtomicLevel(level)
	if err != nil {
		return nil, err
	}
	lines := &lineBuffer{to: w}
	core := zapcore.NewCore(zapcore.NewJSONEncoder(encoding()), lines, at)
	events := zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
		if e.Level < zap.ErrorLevel {
			return nil
		}
		return lines.Sync()
	}))
	return &Log{Logger: events, Level: at, lines: lines}, nil
}

// encoding is how zap writes lines. Those of jobs look alike.
func encoding() zapcore.EncoderConfig {
	enc := zap.NewProductionEncoderConfig()
	enc.EncodeTime = zapcore.ISO8601TimeEncoder
	return enc
}
