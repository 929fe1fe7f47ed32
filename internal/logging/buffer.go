package logging

import (
	"io"
	"sync"
	"time"
)

// logDelay is how long a line may wait to be written together with others, and
// logBuffer how many bytes of lines wait. A line for each of thousands of jobs a
// second, written alone, would cost a system call each.
const (
	logDelay  = 200 * time.Millisecond
	logBuffer = 32 << 10
)

// lineBuffer gathers lines and writes them together: when logDelay has passed
// since the first of them, when there is no room for one more, and at Sync.
type lineBuffer struct {
	to io.Writer

	mu    sync.Mutex
	lines []byte
	due   *time.Timer // writes what waits; nil before the first line
	armed bool
	err   error // of the last write; the next call returns it
}

// Write takes in one line.
func (b *lineBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.lines) > 0 && len(b.lines)+len(line) > logBuffer {
		b.flush()
	}
	b.lines = append(b.lines, line...)
	switch {
	case len(b.lines) > logBuffer: // a line that is longer than all that may wait
		b.flush()
	case !b.armed:
		b.armed = true
		if b.due == nil {
			b.due = time.AfterFunc(logDelay, b.late)
		} else {
			b.due.Reset(logDelay)
		}
	}
	return len(line), b.take()
}

// Sync writes what waits.
func (b *lineBuffer) Sync() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flush()
	return b.take()
}

// late writes what has waited for long enough.
func (b *lineBuffer) late() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.armed = false
	b.flush()
}

// flush writes what waits. The lock must be held.
func (b *lineBuffer) flush() {
	if len(b.lines) == 0 {
		return
	}
	if _, err := b.to.Write(b.lines); err != nil {
		b.err = err
	}
	b.lines = b.lines[:0]
	if cap(b.lines) > 2*logBuffer {
		b.lines = nil
	}
}

// take returns the last error, once.
func (b *lineBuffer) take() error {
	err := b.err
	b.err = nil
	return err
}
