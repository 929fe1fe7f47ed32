// Package capture writes what happened to each job as a trace (pkg/trace), while the
// sidecar runs. The laboratory simulates and replays it.
//
// A line tells of the job's project, priority, times, upstream and outcome. It holds
// nothing of its body or of its response, and no header.
package capture

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/trace"
)

// Settings are the section "capture".
type Settings struct {
	// Path is the file to write; "" writes none.
	Path string `yaml:"path"`
	// Rotate is the size from which on the file is put aside, as Path with ".1" at its
	// end, and a new one begun.
	Rotate settings.Size `yaml:"rotate"`
	// Keep is how many of the files that were put aside are left there. The oldest go
	// first.
	Keep int `yaml:"keep"`
	// Share is how many of the jobs are written: 0.01 is each hundredth. Jobs of one
	// session are all written, or none.
	Share float64 `yaml:"share"`
}

// Default is the settings of an empty file.
func Default() Settings { return Settings{Rotate: 64 << 20, Keep: 3, Share: 1} }

// Check reports what cannot be used.
func (s Settings) Check(f *settings.Faults) {
	f.AtLeast("rotate", int64(s.Rotate), 64<<10)
	f.Within("keep", s.Keep, 0, 1000)
	if !(s.Share > 0 && s.Share <= 1) { // in this form it refuses NaN too
		f.Add("share", `%v is not a share above 0 and up to 1; path: "" writes no job`, s.Share)
	}
}

// Config is a capture's settings and hooks.
type Config struct {
	Settings
	// Failed is called when lines cannot be written, at most every ten seconds; nil is
	// nobody.
	Failed func(error)
}

const (
	// held is how many lines may wait to be written: a second of a busy sidecar. What
	// comes beyond it is lost.
	held = 4096
	// flushEvery is how long a line stays in memory.
	flushEvery = time.Second
	// again is after which time a file that failed is tried again.
	again = 10 * time.Second
)

// Capture takes jobs from any goroutine. It never delays them: it loses lines instead,
// and counts them.
type Capture struct {
	failed   func(error)
	settings atomic.Pointer[Settings]
	changed  chan struct{} // holds one while Run has not taken the settings
	start    time.Time
	lines    chan line

	single        atomic.Int64 // jobs without a session
	written, lost atomic.Uint64
}

// line is a job on its way to the file.
type line struct {
	job            trace.Job
	session        uint64 // 0 is none
	arrived, ended time.Time
}

// New returns a capture that writes while its Run is running.
func New(cfg Config) (*Capture, error) {
	if cfg.Failed == nil {
		cfg.Failed = func(error) {}
	}
	var f settings.Faults
	cfg.Check(&f)
	if err := f.Err(); err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	c := &Capture{failed: cfg.Failed, start: time.Now(), lines: make(chan line, held), changed: make(chan struct{}, 1)}
	c.settings.Store(&cfg.Settings)
	return c, nil
}

// SetSettings replaces the settings, which must have been checked. What waits to be
// written goes where the former ones say.
func (c *Capture) SetSettings(s Settings) {
	if s == *c.settings.Load() {
		return
	}
	c.settings.Store(&s)
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// Add takes in a job that has ended, unless there is no file, it is not in the share,
// or it is no job.
func (c *Capture) Add(r *record.Job) {
	settings := c.settings.Load()
	if settings.Path == "" || r.Read == intake.Unread || r.Outcome == intake.Rejected || r.Outcome == intake.TooLarge {
		return
	}
	session := sessionOf(r)
	if !c.chosen(session, settings.Share) {
		return
	}
	l := line{job: r.Trace(c.start), session: session, arrived: r.Arrived, ended: r.Arrived.Add(r.Total)}
	select {
	case c.lines <- l:
	default:
		c.lost.Add(1)
	}
}

// sessionOf is a hash of the name of the job's session; 0 where it has none.
func sessionOf(r *record.Job) uint64 {
	name := r.Facts.Session.String()
	if name == "" {
		return 0
	}
	return max(1, hash.Mix(hash.Text(name)))
}

// chosen says whether the jobs of a session are written, or a job without one. These are
// spread evenly.
func (c *Capture) chosen(session uint64, share float64) bool {
	if session != 0 {
		return float64(session) <= share*math.MaxUint64
	}
	n := float64(c.single.Add(1))
	return math.Floor(n*share) > math.Floor((n-1)*share)
}

// Counts are how many lines were written, and how many were lost.
func (c *Capture) Counts() (written, lost uint64) { return c.written.Load(), c.lost.Load() }

// Run writes lines until ctx ends, and then those that wait.
func (c *Capture) Run(ctx context.Context) {
	w := writer{c: c, settings: *c.settings.Load()}
	defer w.close()
	flush := time.NewTicker(flushEvery)
	defer flush.Stop()
	for {
		select {
		case l := <-c.lines:
			w.write(&l)
		case <-flush.C:
			w.flush()
		case <-c.changed:
			w.writeAll()
			w.close()
			w.settings, w.retry = *c.settings.Load(), time.Time{}
		case <-ctx.Done():
			w.writeAll()
			return
		}
	}
}

// writer is the file that is written, for the goroutine of Run.
type writer struct {
	c        *Capture
	settings Settings
	file     *file     // nil: none is open
	retry    time.Time // when to try again after a failure
	buffered uint64    // lines that a failure would lose
}

// writeAll writes the lines that wait.
func (w *writer) writeAll() {
	for len(w.c.lines) > 0 {
		l := <-w.c.lines
		w.write(&l)
	}
}

// write writes a line, or counts it as lost.
func (w *writer) write(l *line) {
	if w.file == nil && (w.settings.Path == "" || !w.open()) {
		w.c.lost.Add(1)
		return
	}
	err := w.file.write(l)
	if refused := new(trace.Error); errors.As(err, &refused) && refused.Field != "" {
		w.c.lost.Add(1) // what it says makes no sense in a trace; the next may
		return
	}
	w.buffered++
	if err == nil && w.file.size >= int64(w.settings.Rotate) {
		w.flush()
		w.close()
		return
	}
	if err != nil {
		w.fail(err)
	}
}

// open puts aside what is there and begins a new file.
func (w *writer) open() bool {
	now := time.Now()
	if now.Before(w.retry) {
		return false
	}
	var err error
	if w.file, err = newFile(w.settings.Path, w.settings.Keep); err != nil {
		w.file = nil
		w.fail(err)
		return false
	}
	return true
}

// flush writes what is in memory to the file.
func (w *writer) flush() {
	if w.file == nil {
		return
	}
	if err := w.file.trace.Flush(); err != nil {
		w.fail(err)
		return
	}
	w.c.written.Add(w.buffered)
	w.buffered = 0
}

// fail gives the file up for a time.
func (w *writer) fail(err error) {
	w.c.lost.Add(w.buffered)
	w.buffered = 0
	if w.file != nil {
		_ = w.file.f.Close() // it has failed already
		w.file = nil
	}
	w.retry = time.Now().Add(again)
	w.c.failed(fmt.Errorf("capture: %w", err))
}

// close ends the file.
func (w *writer) close() {
	w.flush()
	if w.file == nil {
		return
	}
	if err := w.file.f.Close(); err != nil {
		w.fail(err)
	}
	w.file = nil
}
