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
	// writeDelay is how long a line may wait to be written together with others, and
	// writeSize from how many bytes on lines are written at once. A line for each of
	// thousands of jobs a second, written alone, would cost a system call each.
	writeDelay = 200 * time.Millisecond
	writeSize  = 32 << 10
	// maxWaiting bounds the bytes of the lines that wait, such as behind a pipe that nobody reads, unless the writer has
	// another limit.
	maxWaiting = 1 << 20
	// retryDelay is the time between two tries of a write that fails, such as to a full disk.
	retryDelay = time.Second
	// syncPatience is how long Sync waits for lines to be written.
	syncPatience = time.Second
)

// writer takes in lines and never waits: a goroutine writes them, many at a time. Lines
// that find no room, because those before them cannot be written, are lost and counted.
type writer struct {
	to    io.Writer
	limit int                   // of the bytes that wait; 0 is maxWaiting
	note  func(lost int) []byte // the line that says how many lines are missing at its place
	lost  atomic.Uint64         // lines in all

	mu      sync.Mutex
	waiting []byte        // whole lines
	spare   []byte        // empty; the memory of lines that were written
	missing int           // how many were lost after those that wait
	writing chan struct{} // is closed when the goroutine that writes ends; nil while there is none
}

// Write takes in whole lines. It returns no error: what is wrong with the log cannot be logged.
func (w *writer) Write(lines []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := !w.some()
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

// some says whether there is something to write; w.mu must be held.
func (w *writer) some() bool { return len(w.waiting) > 0 || w.missing > 0 }

// flush has what waits written soon.
func (w *writer) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writing == nil && w.some() {
		w.begin()
	}
}

// begin starts the goroutine that writes; w.mu must be held, and there is none.
func (w *writer) begin() {
	w.writing = make(chan struct{})
	go w.write()
}

// write writes lines until none wait, and a note after them of those that are missing there.
func (w *writer) write() {
	w.mu.Lock()
	for w.some() {
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

// errNotWritten: lines were not written in time.
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
