// Package admission holds the jobs that wait in the sidecar for an eligible
// upstream: high before low, first come first served within a priority,
// bounded in count and bytes. It is a machine: no clock, no lock, no goroutine.
package admission

import (
	"errors"
	"fmt"

	"example.org/pilotfish/pkg/selection"
)

// The reasons for which a job is shed.
var (
	// ErrFull: there is no room to wait, or a high job needed it.
	ErrFull = errors.New("too many jobs wait for an upstream")
	// ErrDisplaced is the ErrFull of a job that waited until a high one needed its place.
	ErrDisplaced = fmt.Errorf("%w: a high job took the place", ErrFull)
	// ErrWaited: no upstream became eligible in the time the job may wait.
	ErrWaited = errors.New("no upstream became eligible in time")
)

// Config bounds a queue.
type Config struct {
	// Jobs bounds how many wait; default 1000, negative allows none.
	Jobs int
	// Bytes bounds their bodies together; default 256 MiB.
	Bytes int64
}

// Entry is one waiting job. Its fields are set by the caller and not changed
// while it waits.
type Entry struct {
	Priority selection.Priority
	Bytes    int64

	queued     bool
	prev, next *Entry
}

// Queue is the waiting jobs.
type Queue struct {
	cfg   Config
	lists [selection.Priorities]list
	bytes int64
}

// New returns an empty queue.
func New(cfg Config) (*Queue, error) {
	if cfg.Bytes < 0 {
		return nil, fmt.Errorf("admission: Bytes %d must not be negative", cfg.Bytes)
	}
	if cfg.Jobs == 0 {
		cfg.Jobs = 1000
	}
	if cfg.Bytes == 0 {
		cfg.Bytes = 256 << 20
	}
	return &Queue{cfg: cfg}, nil
}

// Push lets e wait. When there is no room, a high job pushes out low ones,
// the latest first; they are returned as shed and no longer wait. Otherwise
// the error is ErrFull and e does not wait.
func (q *Queue) Push(e *Entry) (shed []*Entry, err error) {
	if e.queued {
		panic("BUG: admission: entry pushed twice")
	}
	low := &q.lists[selection.Low]
	jobs, bytes := q.Len(), q.bytes+e.Bytes
	if e.Priority == selection.High {
		// Look before shedding: nobody is pushed out in vain.
		for last := low.last; last != nil && (jobs >= q.cfg.Jobs || bytes > q.cfg.Bytes); last = last.prev {
			shed = append(shed, last)
			jobs, bytes = jobs-1, bytes-last.Bytes
		}
	}
	if jobs >= q.cfg.Jobs || bytes > q.cfg.Bytes {
		return nil, ErrFull
	}
	for _, s := range shed {
		q.Remove(s)
	}
	q.lists[e.Priority].push(e)
	q.bytes += e.Bytes
	e.queued = true
	return shed, nil
}

// Remove takes e out, wherever it stands; it reports whether e was waiting.
func (q *Queue) Remove(e *Entry) bool {
	if !e.queued {
		return false
	}
	q.lists[e.Priority].remove(e)
	q.bytes -= e.Bytes
	e.queued = false
	return true
}

// All yields the waiting jobs in the order in which they are to be served.
// The one just yielded may be removed.
func (q *Queue) All(yield func(*Entry) bool) {
	for _, p := range [...]selection.Priority{selection.High, selection.Low} {
		for e := q.lists[p].first; e != nil; {
			next := e.next
			if !yield(e) {
				return
			}
			e = next
		}
	}
}

// Ahead is how many waiting jobs a newcomer of priority p would let go first.
func (q *Queue) Ahead(p selection.Priority) int {
	n := q.lists[selection.High].len
	if p == selection.Low {
		n += q.lists[selection.Low].len
	}
	return n
}

// Len is how many jobs wait.
func (q *Queue) Len() int { return q.lists[selection.High].len + q.lists[selection.Low].len }

// Bytes is the size of their bodies together.
func (q *Queue) Bytes() int64 { return q.bytes }

// list is a doubly linked list of entries, oldest first.
type list struct {
	first, last *Entry
	len         int
}

func (l *list) push(e *Entry) {
	e.prev, e.next = l.last, nil
	if l.last != nil {
		l.last.next = e
	} else {
		l.first = e
	}
	l.last = e
	l.len++
}

func (l *list) remove(e *Entry) {
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		l.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		l.last = e.prev
	}
	e.prev, e.next = nil, nil
	l.len--
}

// Answer is what a waiting job hears when it is offered a chance.
type Answer uint8

// The answers.
const (
	// Served: it has its upstream, or knows that there is none for it.
	Served Answer = iota
	// Refused: there is no upstream to be had.
	Refused
	// PassedOver: refused for what it is or where it has been, which says
	// nothing of the next.
	PassedOver
)

// maxRefused is how many waiting jobs in a row may be refused before the rest is
// not asked: they would mostly hear the same.
const maxRefused = 8

// Serve offers a chance to the waiting jobs, in order. Those that are served
// leave the queue.
func (q *Queue) Serve(try func(*Entry) Answer) {
	refused := 0
	for e := range q.All {
		switch try(e) {
		case Served:
			refused = 0
			q.Remove(e)
		case Refused:
			if refused++; refused == maxRefused {
				return
			}
		case PassedOver:
		}
	}
}
