package intake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// peek is how many bytes of a body are always kept, 64 KiB. What a job says of
// itself is nearly always among them.
const peek = 64 << 10

// AtOnce is the largest body that an attempt sends together with its head, and does not read from when
// it waits for the answer. A socket takes that much at once.
const AtOnce = 16 << 10

// firstRead is the buffer for a body of undeclared length, and for all when the
// budget is used up: those that declare much and send little must not take more.
const firstRead = 4 << 10

var (
	// ErrTooLarge is a body over the limit; a submitter is answered 413.
	ErrTooLarge = errors.New("the body is too large")
	// ErrSpent: the body can no longer be sent from its beginning. It was released, or
	// another attempt has read from it.
	ErrSpent = errors.New("the body was sent once and is not kept")
)

// Body is the body of a job, kept so that each attempt can send it from its beginning.
//
// When the budget is exhausted, only the head of the body is kept. The rest is
// read from the submitter when an attempt sends it. That can happen once.
//
// Methods are safe for concurrent use.
type Body struct {
	budget *Budget
	limit  int64     // of the whole body
	length int64     // the true one if head is the whole body, or else the declared one, -1 unknown
	rest   io.Reader // nil: head is the whole body

	mu       sync.Mutex
	head     []byte
	room     *room    // the memory of head; nil if that is not used again
	reads    *attempt // the one that is sent, where the body is not whole
	released bool
}

// ReadBody reads a body from r, up to max bytes, and keeps it as far as the
// budget allows. n is the declared length, or -1; it only guides allocation.
// ReadBody blocks as long as r does. If the body is not Whole, r is still read
// after ReadBody has returned.
//
// A body longer than max is ErrTooLarge, one shorter than declared
// io.ErrUnexpectedEOF, one without room for its first bytes ErrNoRoom. Other errors are those of r. All are wrapped, and after an
// error nothing is kept.
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

// fill reads the body to its end, or as far as the budget allows.
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

// grow makes room for more of the body, and reports whether the budget allows it.
// The reserve must have room for the first bytes.
func (b *Body) grow() (bool, error) {
	size := int64(cap(b.head))
	next := 2 * size
	switch whole := b.length + 1; { // one byte more finds the end in the same read
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

// move gives head the memory for so many bytes.
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

// Whole reports whether all of the body is kept. If it is not, the budget was
// exhausted, and facts beyond the kept bytes count as absent.
func (b *Body) Whole() bool { return b.rest == nil }

// Replayable reports whether another attempt can send the body from its
// beginning. A Whole body always is; another one until an attempt has read from it.
func (b *Body) Replayable() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reads == nil && !b.released
}

// Bytes returns the kept bytes, nil after Release. They must not be changed.
func (b *Body) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.head
}

// Len returns the length of the body in bytes: the true length if it is Whole,
// otherwise the declared one, or -1.
func (b *Body) Len() int64 { return b.length }

// Release gives the kept bytes back to the budget; a second call does nothing. A body of AtOnce bytes
// at most must not be read from anymore: its memory is used for another body. With a longer one,
// the attempt that reads goes on, so it may hold the memory a little longer.
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

// NewReader returns a body that is not Whole from its beginning, for one attempt. The first one that is
// read from is the last: later ones, and the others, fail with ErrSpent. So an abandoned
// attempt that still reads takes nothing away from another.
func (b *Body) NewReader() io.Reader {
	return &attempt{body: b, from: io.MultiReader(bytes.NewReader(b.Bytes()), b.rest)}
}

// attempt reads a body for one attempt. It is for one goroutine.
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

// begin reports whether the attempt is the one that reads the body.
func (b *Body) begin(a *attempt) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reads == nil && !b.released {
		b.reads = a
	}
	return b.reads == a
}
