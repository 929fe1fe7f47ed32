package intake

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

var (
	// ErrSpent: the body can no longer be sent from its beginning. It was released,
	// or an attempt has read what is not kept.
	ErrSpent = errors.New("the body was sent once and is not kept")
	// errClosed: an attempt's reader was read after its Close, or beyond what is
	// kept after a later attempt has begun.
	errClosed = errors.New("this attempt's body is closed")
)

// NewReader returns the body from its beginning, for one attempt. An abandoned
// attempt may still read from an earlier reader; neither disturbs the other. If
// the body is not Replayable, reading fails with ErrSpent.
func (b *Body) NewReader() io.ReadCloser {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.newest++
	return &attempt{body: b, number: b.newest, head: b.head, spent: b.started || b.released}
}

// attempt reads a body for one attempt.
type attempt struct {
	body   *Body
	number int
	head   []byte // the kept bytes that are still to be read
	sent   int64
	spent  bool
	closed atomic.Bool
}

// Read is for one goroutine at a time; Close may be called by another.
func (a *attempt) Read(p []byte) (int, error) {
	switch {
	case a.closed.Load():
		return 0, errClosed
	case a.spent:
		return 0, ErrSpent
	case len(p) == 0:
		return 0, nil
	case len(a.head) > 0:
		n := copy(p, a.head)
		a.head = a.head[n:]
		a.sent += int64(n)
		return n, nil
	}
	rest, err := a.body.passOn(a.number)
	if err != nil {
		return 0, err
	}
	n, err := rest.Read(p)
	a.sent += int64(n)
	switch {
	case a.sent > a.body.limit:
		n, err = 0, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, a.body.limit)
	case errors.Is(err, io.EOF) && a.sent < a.body.length:
		err = shortBody(a.sent, a.body.length)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		a.body.fail(err)
	}
	return n, err
}

// Close ends the reading. It leaves the submitter's own body open.
func (a *attempt) Close() error {
	a.closed.Store(true)
	return nil
}

// passOn gives the attempt of that number what the submitter has not sent yet, if
// no later attempt has begun. From then on no other attempt can have it.
func (b *Body) passOn(number int) (io.Reader, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.rest == nil:
		return nil, io.EOF
	case b.err != nil:
		return nil, b.err
	case number != b.newest:
		return nil, errClosed
	}
	b.started = true
	return b.rest, nil
}

func (b *Body) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}
