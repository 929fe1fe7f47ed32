package intake

import (
	"errors"
	"io"
	"sync"
)

// Reader reads Facts out of bodies. It is safe for concurrent use.
type Reader struct {
	root  *node
	walks sync.Pool // of *walk
}

// NewReader returns a Reader of the members at fields. A pointer that is
// malformed, used twice or within another is refused with a *PointerError.
func NewReader(fields Fields) (*Reader, error) {
	root, err := fields.tree()
	if err != nil {
		return nil, err
	}
	return &Reader{root: root}, nil
}

// Read reads the facts of a whole body. It stops as soon as all members have
// been found, so that what comes later costs nothing and is not checked;
// otherwise the whole body must be valid JSON. Strings may hold invalid UTF-8,
// because most of them are only passed on.
//
// Errors are *SyntaxError or *FieldError. A member, or an object on the way
// to one, that is met twice is an error.
func (r *Reader) Read(body []byte) (Facts, error) { return r.read(body, true) }

// ReadHead reads the facts of a body of which only the beginning is at hand.
// A head that ends amid the job is no error: members beyond it are absent.
func (r *Reader) ReadHead(head []byte) (Facts, error) { return r.read(head, false) }

func (r *Reader) read(body []byte, whole bool) (Facts, error) {
	w, ok := r.walks.Get().(*walk)
	if !ok {
		w = new(walk)
	}
	w.start(body, whole)
	err := w.job(r.root)
	facts := w.facts
	w.stop()
	r.walks.Put(w)

	switch {
	case err == nil || errors.Is(err, errEndOfHead):
		return facts, nil
	case !whole && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
		return facts, nil
	}
	return Facts{}, explain(body, err)
}
