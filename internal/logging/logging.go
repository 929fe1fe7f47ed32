// Package logging writes the log: lines as JSON that are written together, one for each
// job, and one for each change of an upstream.
package logging

import (
	"bytes"
	"io"
	"math"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/settings"
)

// Settings is the section "log" of a configuration file.
type Settings struct {
	// Level is the least level that is logged: debug, info, warn or error. A job
	// that failed is a warning, any other job is at level info.
	Level string `yaml:"level"`
	// Jobs says which jobs get a line: all, failed or none.
	Jobs string `yaml:"jobs"`
	// Share is how many of the jobs that did not fail get a line where Jobs is all:
	// 0.01 is each hundredth.
	Share float64 `yaml:"share"`
	// Bodies is a folder for the bodies of jobs, which `tracelab replay` sends again; empty writes none. The file
	// bodies.jsonl there has mode 0600. It has all that submitters sent except headers, so treat it like their data.
	// A change waits for a restart.
	Bodies string `yaml:"bodies"`
	// BodiesSize bounds that file. What exceeds it is not written.
	BodiesSize settings.Size `yaml:"bodies_size"`
}

// Which jobs get a line.
const (
	allJobs    = "all"
	failedJobs = "failed"
	noJobs     = "none"
)

// Default is the settings of an empty file.
func Default() Settings { return Settings{Level: "info", Jobs: allJobs, Share: 1, BodiesSize: 1 << 30} }

// Check adds what cannot be used to f.
func (s Settings) Check(f *settings.Faults) {
	f.OneOf("level", s.Level, []string{"debug", "info", "warn", "error"})
	f.OneOf("jobs", s.Jobs, []string{allJobs, failedJobs, noJobs})
	f.Between("share", s.Share, 0, 1)
	f.AtLeast("bodies_size", int64(s.BodiesSize), 1)
}

// Log writes lines as JSON, so that no input can forge one. Nobody waits for it: lines
// are written by a goroutine of its own. Sync waits for that goroutine for a short time.
type Log struct {
	// Logger writes what happens to the program, its upstreams and its jobs.
	*zap.Logger
	// Level is the least level that is written. It may be set at any time.
	Level zap.AtomicLevel

	encoder zapcore.Encoder
	lines   *writer
	good    atomic.Int64 // jobs that did not fail
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
		line, _ := encoder.EncodeEntry(zapcore.Entry{ // of a text and a number, it does not fail
			Level: zap.WarnLevel, Time: time.Now(), Message: "log lines are missing here: they could not be written in time",
		}, []zap.Field{zap.Int("lines", lost)})
		defer line.Free()
		return bytes.Clone(line.Bytes())
	}}
	events := zap.New(bounded{zapcore.NewCore(encoder, lines, at)}, zap.Hooks(func(e zapcore.Entry) error {
		if e.Level >= zap.ErrorLevel {
			lines.flush()
		}
		return nil
	}))
	return &Log{Logger: events, Level: at, encoder: encoder, lines: lines}, nil
}

// Lost is how many lines were lost because those before them could not be written in time.
func (l *Log) Lost() uint64 { return l.lines.lost.Load() }

// Job writes the one line of a job that has ended, if the settings choose it: a warning where it failed.
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
	entry := zapcore.Entry{Level: level, Time: r.Ended(), Message: "job"}
	line, _ := l.encoder.EncodeEntry(entry, []zap.Field{zap.Inline(r)}) // a job's members do not fail
	defer line.Free()
	_, _ = l.lines.Write(line.Bytes()) // it does not fail either
}

// chosen says whether a job gets its line. Of the jobs that did not fail, the share that the
// settings name are spread evenly.
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
