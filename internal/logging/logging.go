// Package logging writes the log: lines as JSON that are written together, one for each
// job, and one for each change of an upstream.
package logging

import (
	"bytes"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/settings"
)

// Settings is the section "log" of a configuration file.
type Settings struct {
	// Level is the minimum level: debug, info, warn or error. Failed jobs are warnings,
	// other jobs have the level info.
	Level string `yaml:"level"`
	// Jobs selects the jobs that are logged: all, failed or none.
	Jobs string `yaml:"jobs"`
	// Share is the sampling rate of jobs that did not fail, from 0 to 1, if "jobs" is all.
	Share float64 `yaml:"share"`
	// Bodies is a folder for the bodies of jobs, which `tracelab replay` sends again; empty writes none. The file
	// bodies.jsonl there has mode 0600. It has all that submitters sent except headers, so treat it like their data.
	// A change needs a restart.
	Bodies string `yaml:"bodies"`
	// BodiesSize bounds that file. What exceeds it is not written.
	BodiesSize settings.Size `yaml:"bodies_size"`
}

// The values of Settings.Jobs.
const (
	allJobs    = "all"
	failedJobs = "failed"
	noJobs     = "none"
)

// Default is the settings of an empty file.
func Default() Settings { return Settings{Level: "info", Jobs: allJobs, Share: 1, BodiesSize: 1 << 30} }

// Check reports invalid settings to f.
func (s Settings) Check(f *settings.Faults) {
	f.OneOf("level", s.Level, []string{"debug", "info", "warn", "error"})
	f.OneOf("jobs", s.Jobs, []string{allJobs, failedJobs, noJobs})
	f.Between("share", s.Share, 0, 1)
	f.AtLeast("bodies_size", int64(s.BodiesSize), 1)
}

// Log writes lines as JSON: no input can forge a line. It never blocks its callers: a goroutine
// writes the lines. Sync waits a short time for that goroutine.
type Log struct {
	// Logger writes the events of the program and of its upstreams, and keeps them in Events. Quiet writes the log
	// lines of libraries, and does not keep them in Events.
	*zap.Logger
	Quiet  *zap.Logger
	Events *Events
	// Level is the minimum level. It can be changed at any time.
	Level zap.AtomicLevel

	lines *writer
	jobs  sync.Pool    // of lines
	good  atomic.Int64 // jobs that did not fail
}

// New returns a log whose lines go to w.
func New(w io.Writer, level string) (*Log, error) {
	at, err := zap.ParseAtomicLevel(level)
	if err != nil {
		return nil, err
	}
	enc := zap.NewProductionEncoderConfig()
	enc.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	encoder := zapcore.NewJSONEncoder(enc)
	lines := &writer{to: w, note: func(lost int) []byte {
		line, _ := encoder.EncodeEntry(zapcore.Entry{ // it never fails for a text and a number
			Level: zap.WarnLevel, Time: time.Now(), Message: "log lines are missing here: they could not be written in time",
		}, []zap.Field{zap.Int("lines", lost)})
		defer line.Free()
		return bytes.Clone(line.Bytes())
	}}
	quiet := zap.New(bounded{zapcore.NewCore(encoder, lines, at)}, zap.Hooks(func(e zapcore.Entry) error {
		if e.Level >= zap.ErrorLevel {
			lines.flush()
		}
		return nil
	}))
	events := &Events{}
	all := quiet.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewTee(core, bounded{eventCore{Core: zapcore.NewCore(encoder, zapcore.AddSync(io.Discard), zap.InfoLevel), events: events}})
	}))
	return &Log{Logger: all, Quiet: quiet, Events: events, Level: at, lines: lines, jobs: sync.Pool{New: func() any { return new(line) }}}, nil
}

// Lost returns the number of lines that were dropped because earlier ones could not be written in time.
func (l *Log) Lost() uint64 { return l.lines.lost.Load() }

// Job writes the line of an ended job, if the settings select it.
func (l *Log) Job(set Settings, r *record.Job) {
	if !l.chosen(set, r.Failed()) {
		return
	}
	level := zap.InfoLevel
	if r.Failed() {
		level = zap.WarnLevel
	}
	if !l.Level.Enabled(level) {
		return
	}
	job := l.jobs.Get().(*line)
	defer l.jobs.Put(job)
	job.encode(level, r)
	_, _ = l.lines.Write(job.text) // it never fails
}

// chosen counts a job and reports whether it is logged. Jobs that did not fail are sampled at even distances.
func (l *Log) chosen(set Settings, failed bool) bool {
	switch {
	case set.Jobs == noJobs:
		return false
	case failed:
		return true
	case set.Jobs != allJobs:
		return false
	}
	n := float64(l.good.Add(1))
	return math.Floor(n*set.Share) > math.Floor((n-1)*set.Share)
}
