package intake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// peek is the number of bytes of a body that are always kept: 64 KiB. They nearly
// always contain the members that the sidecar reads.
const peek = 64 << 10

// AtOnce is the largest body that an attempt writes together with the request head. A socket buffer
// takes that much at once, so the attempt no longer reads the body while it waits for the response.
const AtOnce = 16 << 10

// firstRead is the first buffer of a body without Content-Length. When the budget is used up it
// is the first buffer of every body, so that a large Content-Length alone takes no memory.
const firstRead = 4 << 10

var (
	// ErrTooLarge: the body exceeds the limit; the submitter gets 413.
	ErrTooLarge = errors.New("the body is too large")
	// ErrSpent: the body cannot be sent again from its start. It was released, or it was not
	// kept whole and another attempt has read from it.
	ErrSpent = errors.New("the body was sent once and is not kept")
)

// Body is the body of a job, kept in memory so that each attempt can send it from its start.
//
// When the budget is exhausted, only the first bytes are kept. An attempt streams the
// rest from the submitter, so the job cannot be retried after that.
//
// Methods are safe for concurrent use.
type Body struct {
	budget *Budget
	limit  int64     // maximum length of the whole body
	length int64     // the actual length if head is the whole body, otherwise the declared length or -1
	rest   io.Reader // the part that is not kept; nil if head is the whole body

	mu       sync.Mutex
	head     []byte
	room     *room    // the reusable buffer behind head; nil if the buffer is left to the garbage collector
	reads    *attempt // the only attempt that can read a body that is not whole; nil before the first read
	released bool
}

// ReadBody reads a body from r and keeps it as far as the budget allows. max is the
// maximum length. n is the declared length, or -1; it only guides allocation.
// ReadBody blocks as long as r does. If the body is not Whole, r is still read
// after ReadBody has returned.
//
// It returns ErrTooLarge if the body is longer than max, io.ErrUnexpectedEOF if it is
// shorter than declared, ErrNoRoom if the budget has no room for its first bytes, or an
// error of r. Errors are wrapped; after an error nothing is kept.
func ReadBody(r io.Reader, n, max int64, budget *Budget) (*Body, error) {
	if n > max {
		return nil, fmt.Errorf("%w: %d bytes declared, %d allowed", ErrTooLarge, n, max)
	}
	b := &Body{budget: budget, limit: max, length: n, rest: r}
	if err := b.fill(); err != nil {
		b.Release()
		return nil, err
	}
	return b, nil
}

// fill reads the body until its end or until the budget is exhausted.
func (b *Body) fill() error {
	for {
		if len(b.head) == cap(b.head) {
			if grown, err := b.grow(); !grown {
				return err
			}
		}
		m, err := b.rest.Read(b.head[len(b.head):cap(b.head)])
		b.head = b.head[:len(b.head)+m]
		n := int64(len(b.head))
		switch {
		case n > b.limit:
			return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, b.limit)
		case err == nil:
		case !errors.Is(err, io.EOF):
			return fmt.Errorf("reading the body, after %d bytes: %w", n, err)
		case n < b.length:
			return shortBody(n, b.length)
		default:
			b.rest, b.length = nil, n
			return nil
		}
	}
}

func shortBody(n, declared int64) error {
	return fmt.Errorf("the body ended after %d of %d declared bytes: %w", n, declared, io.ErrUnexpectedEOF)
}

// grow enlarges the buffer and reports whether the budget allows it. The first peek
// bytes come from the reserve if necessary; without room there, grow returns an error.
func (b *Body) grow() (bool, error) {
	size := int64(cap(b.head))
	next := 2 * size
	switch whole := b.length + 1; { // with one byte more, the same read returns io.EOF
	case size == 0 && b.length < 0:
		next = firstRead
	case size == 0:
		next = min(whole, peek)
	case whole > size && whole <= 4*size:
		next = whole
	}
	if size < peek {
		next = min(next, peek)
	}
	next = min(next, b.limit+1)
	if !b.budget.take(b.budget.whole.Load(), next-size) {
		if size >= peek {
			return false, nil
		}
		next = min(next, max(2*size, firstRead))
		if err := b.budget.Reserve(next - size); err != nil {
			return false, fmt.Errorf("reading the body, after %d bytes: %w", size, err)
		}
	}
	b.move(next)
	return true, nil
}

// move copies head to a buffer of the given size.
func (b *Body) move(size int64) {
	taken := b.budget.rooms.get(size)
	var grown []byte
	if taken != nil {
		grown = taken.bytes[:len(b.head):size]
	} else {
		b.budget.collect()
		grown = make([]byte, len(b.head), size)
	}
	copy(grown, b.head)
	b.budget.leave(int64(cap(b.head)), b.room)
	b.head, b.room = grown, taken
}

// Whole reports whether the whole body is kept. If it is not, the budget was
// exhausted, and members beyond the kept bytes count as absent.
func (b *Body) Whole() bool { return b.rest == nil }

// Replayable reports whether another attempt can send the body from its start. A Whole
// body is replayable until Release, any other body until an attempt has read from it.
func (b *Body) Replayable() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reads == nil && !b.released
}

// Bytes returns the kept bytes, nil after Release. The caller must not change them.
func (b *Body) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.head
}

// Len returns the length of the body in bytes: the actual length if it is Whole,
// otherwise the declared length or -1.
func (b *Body) Len() int64 { return b.length }

// Release returns the kept bytes to the budget; a second call does nothing. A body of up to AtOnce
// bytes must not be read after Release, because its buffer is reused for another body. A longer body
// can still be read by a running attempt: its buffer is left to the garbage collector.
func (b *Body) Release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.head) > AtOnce {
		b.room = nil
	}
	b.released = true
	bytes := int64(cap(b.head))
	b.budget.Return(bytes)
	b.budget.leave(bytes, b.room)
	b.head, b.room = nil, nil
}

// NewReader returns a reader of a body that is not Whole, for one attempt. Only the first reader that
// is used works; all other readers fail with ErrSpent. So two attempts never share the bytes that the
// submitter sends.
func (b *Body) NewReader() io.Reader {
	return &attempt{body: b, from: io.MultiReader(bytes.NewReader(b.Bytes()), b.rest)}
}

// attempt is the reader of one attempt. It is not safe for concurrent use.
type attempt struct {
	body *Body
	from io.Reader
	sent int64
}

func (a *attempt) Read(p []byte) (int, error) {
	if !a.body.begin(a) {
		return 0, ErrSpent
	}
	n, err := a.from.Read(p)
	a.sent += int64(n)
	switch {
	case a.sent > a.body.limit:
		return 0, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, a.body.limit)
	case errors.Is(err, io.EOF) && a.sent < a.body.length:
		return n, shortBody(a.sent, a.body.length)
	}
	return n, err
}

// begin makes the attempt the body's only reader if it has none, and reports whether the attempt is that reader.
func (b *Body) begin(a *attempt) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reads == nil && !b.released {
		b.reads = a
	}
	return b.reads == a
}
