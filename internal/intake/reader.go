package intake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/pilotfish/internal/settings"
)

// Reader reads Facts out of bodies. It is safe for concurrent use.
type Reader struct {
	root    *node
	anyType bool      // a body is a job's whatever its content type, if it looks like one
	walks   sync.Pool // of *walk, for their buffers
}

// NewReader returns a Reader of the members that the settings point to, or an
// error that names the pointers that cannot be used.
func NewReader(s Settings) (*Reader, error) {
	var f settings.Faults
	root := s.tree(&f)
	if err := f.Err(); err != nil {
		return nil, fmt.Errorf("intake: %w", err)
	}
	return &Reader{root: root, anyType: s.Read == ReadAny}, nil
}

// read reads the facts of a body. It stops as soon as all members have been
// found: what comes later costs nothing and is not checked. Otherwise the body
// must be valid JSON, nested 10,000 levels at most: jsontext's bound, which costs a
// few MiB of stack. Strings may hold invalid UTF-8, because most of them are only
// passed on. If only the beginning of the body is kept, it is not whole; a job that
// goes on beyond that is no error, and later members count as absent.
//
// Errors are *syntaxError or *fieldError. It is an error if a member, or an
// object on the way to one, is there twice.
func (r *Reader) read(body []byte, whole bool) (Facts, Reading, error) {
	w, ok := r.walks.Get().(*walk)
	if !ok {
		w = new(walk)
	}
	var err error
	if w.start(body, whole); !whole || !w.quick(r.root) {
		w.start(body, whole)
		err = w.job(r.root)
	}
	facts, decisive := w.facts, w.met[project] && w.met[priority]
	w.stop()
	r.walks.Put(w)

	cut := errors.Is(err, errEndOfHead) || !whole && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
	switch {
	case err != nil && !cut:
		return Facts{}, Unread, explain(body, err)
	case cut && !decisive:
		return facts, Partly, nil
	case facts.Key == 0:
		return facts, NoProject, nil
	}
	return facts, Full, nil
}

// errEndOfHead ends a walk over the beginning of a body, when it is used up.
var errEndOfHead = errors.New("end of head")

// walk is one pass over one body, in step with a tree of wanted members.
type walk struct {
	dec     jsontext.Decoder
	src     bytes.Buffer // over the body itself: the decoder reads it in place
	body    []byte
	whole   bool          // body is the whole body, not only its beginning
	left    int           // wanted members that may still come
	seen    uint64        // bits of the nodes that were met
	met     [members]bool // wanted members that were met, null or not
	facts   Facts
	scratch []byte // for names and texts with escapes
}

// start begins a walk.
func (w *walk) start(body []byte, whole bool) {
	w.body, w.whole = body, whole
	w.seen, w.met, w.facts = 0, [members]bool{}, Facts{}
}

// stop drops the body, so that an idle walk does not keep it in memory.
func (w *walk) stop() {
	if w.src.Len() > 0 || w.src.Cap() > 0 {
		w.src = bytes.Buffer{}
		w.dec.Reset(&w.src)
	}
	w.body, w.facts = nil, Facts{}
}

// job reads the whole job. Duplicate names matter only where they are wanted, and
// invalid UTF-8 is let through: most of a body is only passed on.
func (w *walk) job(root *node) error {
	w.src = *bytes.NewBuffer(w.body)
	w.dec.Reset(&w.src, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	kind, start := w.dec.PeekKind(), w.next()
	if kind != '{' {
		if _, err := w.dec.ReadToken(); err != nil {
			return err
		}
		return w.fault("", start, "must be an object, not "+kindName(kind))
	}
	w.left = root.leaves
	if err := w.object(root); err != nil || w.dec.StackDepth() > 0 {
		return err // without an error it stopped within the object
	}
	if w.dec.PeekKind() != jsontext.KindInvalid {
		return &syntaxError{position: positionAt(w.body, w.next()), Reason: "more follows after the job's object"}
	}
	if _, err := w.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// object reads the object that n stands for, up to its end or until no wanted
// member is left.
func (w *walk) object(n *node) error {
	if _, err := w.dec.ReadToken(); err != nil {
		return err
	}
	after := w.left - n.leaves
	for w.dec.PeekKind() == '"' {
		name, err := w.dec.ReadValue()
		if err != nil {
			return err
		}
		start := int(w.dec.InputOffset()) - len(name)
		switch c := w.child(n, name); {
		case c == nil:
			_, err = w.dec.ReadValue() // skipped
		case w.seen&c.bit != 0:
			err = w.fault(c.pointer, start, "is there twice")
		default:
			w.seen |= c.bit
			err = w.member(c)
		}
		if err != nil || w.left == 0 {
			return err
		}
	}
	if _, err := w.dec.ReadToken(); err != nil {
		return err
	}
	w.left = after // the object may not come again, so what it lacks will not come
	return nil
}

// child returns the child of n that a quoted name stands for, or nil.
func (w *walk) child(n *node, quoted []byte) *node {
	if name, ok := w.unquote(quoted, maxPointer); ok {
		return n.child(name)
	}
	return nil
}

// member reads the value of c: a wanted member, or an object on the way to some.
func (w *walk) member(c *node) error {
	kind := w.dec.PeekKind()
	if kind == '{' && c.want == none {
		return w.object(c)
	}
	value, err := w.dec.ReadValue()
	if err != nil {
		return err
	}
	end := int(w.dec.InputOffset())
	if kind == '0' && !w.whole && end == len(w.body) {
		return errEndOfHead // more digits may follow
	}
	w.left -= c.leaves
	w.met[c.want] = true
	if kind == 'n' {
		return nil
	}
	if wrong := w.set(c.want, kind, value); wrong != "" {
		return w.fault(c.pointer, end-len(value), wrong)
	}
	return nil
}

// next returns the offset of the token to come.
func (w *walk) next() int {
	return len(w.body) - len(bytes.TrimLeft(w.body[w.dec.InputOffset():], " \t\r\n:,"))
}

func (w *walk) fault(pointer string, offset int, reason string) error {
	return &fieldError{position: positionAt(w.body, offset), Pointer: pointer, Reason: reason}
}
