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

// New writes JSON lines, so that no input can forge one. Lines may wait for
// logDelay, but not behind an error; Sync writes what waits.
func New(w io.Writer, level string) (*zap.Logger, zap.AtomicLevel, error) {
	at, err := zap.ParseAtomicLevel(level)
	if err != nil {
		return nil, at, err
	}
	enc := zap.NewProductionEncoderConfig()
	enc.EncodeTime = zapcore.ISO8601TimeEncoder
	lines := &lineBuffer{to: w}
	core := zapcore.NewCore(zapcore.NewJSONEncoder(enc), lines, at)
	return zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
		if e.Level < zap.ErrorLevel {
			return nil
		}
		return lines.Sync()
	})), at, nil
}
