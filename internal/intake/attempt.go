package intake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ErrSpent: the body can no longer be sent from its beginning. It was released, or
// another attempt has read from it.
var ErrSpent = errors.New("the body was sent once and is not kept")

// NewReader returns a body that is not Whole from its beginning, for one attempt. The first one that is
// read from is the last: later ones, and the others, fail with ErrSpent. So an abandoned
// attempt that still reads takes nothing away from another.
func (b *Body) NewReader() io.Reader {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &attempt{body: b, from: io.MultiReader(bytes.NewReader(b.head), b.rest)}
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
