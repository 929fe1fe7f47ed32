package logging

import (
	"cmp"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Lines are written together, after writeDelay or when there are writeSize bytes. One system call
	// for each line would be thousands a second. A crash loses the lines of at most writeDelay.
	writeDelay = 200 * time.Millisecond
	// writeSize is some 400 lines of jobs. Each write starts a goroutine on another processor: with 32 KiB, a job
	// takes 3 % more CPU time.
	writeSize = 256 << 10
	// maxWaiting bounds the bytes of unwritten lines, for example if nobody reads the pipe, unless the writer has
	// another limit.
	maxWaiting = 1 << 20
	// retryDelay is the pause before a failed write is retried, for example to a full disk.
	retryDelay = time.Second
	// syncPatience is how long Sync waits for lines to be written.
	syncPatience = time.Second
)

// writer buffers lines without blocking; a goroutine writes them in batches. Lines that do not fit
// into the buffer are dropped and counted.
type writer struct {
	to    io.Writer
	limit int                   // of the bytes that wait; 0 is maxWaiting
	note  func(lost int) []byte // returns the line that reports dropped lines
	lost  atomic.Uint64         // all dropped lines

	mu      sync.Mutex
	waiting []byte        // whole lines
	spare   []byte        // empty; the memory of lines that were written
	missing int           // lines that were dropped after the waiting ones
	writing chan struct{} // closed when the writing goroutine ends; nil without one
}

// Write buffers whole lines. It returns no error: an error of the log cannot be logged.
func (w *writer) Write(lines []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := !w.hasLines()
	if len(w.waiting)+len(lines) > cmp.Or(w.limit, maxWaiting) || w.missing > 0 {
		w.missing++
		w.lost.Add(1)
	} else {
		w.waiting = append(w.waiting, lines...)
	}
	switch {
	case w.writing != nil: // the goroutine finds this line too
	case len(w.waiting) >= writeSize:
		w.begin()
	case first:
		time.AfterFunc(writeDelay, w.flush)
	}
	return len(lines), nil
}

// hasLines reports whether there is something to write; w.mu must be held.
func (w *writer) hasLines() bool { return len(w.waiting) > 0 || w.missing > 0 }

// flush starts to write the waiting lines.
func (w *writer) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writing == nil && w.hasLines() {
		w.begin()
	}
}

// begin starts the writing goroutine; w.mu must be held, and none must run.
func (w *writer) begin() {
	w.writing = make(chan struct{})
	go w.write()
}

// write writes until no lines wait. The note about dropped lines follows the line before them.
func (w *writer) write() {
	w.mu.Lock()
	for w.hasLines() {
		lines := w.waiting
		if w.missing > 0 {
			lines = append(lines, w.note(w.missing)...)
		}
		w.waiting, w.spare, w.missing = w.spare, nil, 0
		w.mu.Unlock()
		for rest := lines; len(rest) > 0; {
			n, err := w.to.Write(rest)
			rest = rest[n:]
			if err != nil {
				time.Sleep(retryDelay)
			}
		}
		w.mu.Lock()
		if cap(lines) <= 2*writeSize {
			w.spare = lines[:0]
		}
	}
	close(w.writing)
	w.writing = nil
	w.mu.Unlock()
}

// errNotWritten: Sync timed out.
var errNotWritten = errors.New("log lines still wait to be written")

// Sync waits until no lines wait to be written, for at most syncPatience.
func (w *writer) Sync() error {
	w.flush()
	w.mu.Lock()
	writing := w.writing
	w.mu.Unlock()
	if writing == nil {
		return nil
	}
	select {
	case <-writing:
		return nil
	case <-time.After(syncPatience):
		return errNotWritten
	}
}
