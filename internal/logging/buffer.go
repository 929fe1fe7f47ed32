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
// since the first of them, when there is no room for one more, and at Sync. Lines
// are taken in while others are written.
type lineBuffer struct {
	to io.Writer

	mu    sync.Mutex
	lines []byte
	due   *time.Timer // writes what waits; nil before the first line
	armed bool

	writing sync.Mutex // is taken while mu is held, so that lines are written in their order
	spare   []byte     // the memory of lines that were written; under writing
	err     error      // of the last write; the next call of Write or Sync returns it; under writing
}

// Write takes in one line, and returns what went wrong with those before.
func (b *lineBuffer) Write(line []byte) (int, error) {
	b.add(line)
	return len(line), b.take()
}

// add takes in one line.
func (b *lineBuffer) add(line []byte) {
	b.mu.Lock()
	for len(b.lines) > 0 && len(b.lines)+len(line) > logBuffer {
		b.flush()
		b.mu.Lock()
	}
	b.lines = append(b.lines, line...)
	if len(b.lines) > logBuffer { // a line that is longer than all that may wait
		b.flush()
		return
	}
	if !b.armed {
		b.armed = true
		if b.due == nil {
			b.due = time.AfterFunc(logDelay, b.late)
		} else {
			b.due.Reset(logDelay)
		}
	}
	b.mu.Unlock()
}

// Sync writes what waits.
func (b *lineBuffer) Sync() error {
	b.mu.Lock()
	b.flush()
	return b.take()
}

// late writes what has waited for long enough.
func (b *lineBuffer) late() {
	b.mu.Lock()
	b.armed = false
	b.flush()
}

// flush writes what waits. The lock must be held; flush releases it before it writes.
func (b *lineBuffer) flush() {
	b.writing.Lock()
	defer b.writing.Unlock()
	lines := b.lines
	b.lines = b.spare[:0]
	b.mu.Unlock()
	if len(lines) > 0 {
		if _, err := b.to.Write(lines); err != nil {
			b.err = err
		}
	}
	if b.spare = lines; cap(lines) > 2*logBuffer {
		b.spare = nil
	}
}

// take returns the last error, once. Lines that are being written are written then.
func (b *lineBuffer) take() error {
	b.writing.Lock()
	defer b.writing.Unlock()
	err := b.err
	b.err = nil
	return err
}
