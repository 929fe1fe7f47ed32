package intake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/pilotfish/internal/settings"
)

// Reader reads Facts out of bodies. It is safe for concurrent use.
type Reader struct {
	root    *node        // members of the body
	head    []headMember // the others
	project Places
	walks   sync.Pool // of *walk, for their buffers
}

// NewReader returns a Reader of the members that the settings point to, or an
// error that names the pointers that cannot be used.
func NewReader(s Settings) (*Reader, error) {
	var f settings.Faults
	root, head := s.members(&f)
	if err := f.Err(); err != nil {
		return nil, fmt.Errorf("intake: %w", err)
	}
	return &Reader{root: root, head: head, project: s.Project}, nil
}

// read reads the facts of a request. It stops as soon as all members have been
// found: what comes later costs nothing and is not checked. Otherwise the body
// must be valid JSON, nested 10,000 levels at most: jsontext's bound, which costs a
// few MiB of stack. Strings may hold invalid UTF-8, because most of them are only
// passed on. If only the beginning of the body is kept, it is not whole; a job that
// goes on beyond that is no error, and later members count as absent.
//
// Errors are *bodyError or *headError. It is an error if a member, or
// an object on the way to one, is there twice.
func (r *Reader) read(h Head, body []byte, whole bool) (Facts, Reading, error) {
	w := r.begin(body, whole)
	defer r.end(w)
	var err error
	if r.root.leaves > 0 {
		err = w.job(r.root)
	}
	cut := errors.Is(err, errEndOfHead) || !whole && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
	if err != nil && !cut {
		return Facts{}, Unread, explain(body, err)
	}
	if err = w.readHead(h, r.head); err == nil {
		err = w.join()
	}
	if err != nil {
		return Facts{}, Unread, err
	}
	return w.facts, w.reading(cut), nil
}

func (r *Reader) begin(body []byte, whole bool) *walk {
	w, ok := r.walks.Get().(*walk)
	if !ok {
		w = new(walk)
	}
	w.start(body, whole, r.project)
	return w
}

func (r *Reader) end(w *walk) {
	w.stop()
	r.walks.Put(w)
}

// errEndOfHead ends a walk over the beginning of a body, when it is used up.
var errEndOfHead = errors.New("end of head")

// tokens are the tokens and values of a body, as a jsontext.Decoder reads them.
type tokens interface {
	PeekKind() jsontext.Kind
	ReadToken() (jsontext.Token, error)
	ReadValue() (jsontext.Value, error)
	InputOffset() int64
}

// walk is one pass over one body, or two, in step with a tree of wanted members.
type walk struct {
	in      tokens // the scanner or the decoder
	scanner scanner
	dec     jsontext.Decoder
	src     bytes.Buffer // over the body itself: the decoder reads it in place
	body    []byte
	whole   bool          // body is the whole body, not only its beginning
	left    int           // wanted members that may still come
	seen    uint64        // bits of the nodes that were met
	met     [members]bool // wanted members that were met, null or not
	project Places
	names   [maxPlaces]string // the project's, by its places
	chain   []Part            // blocks of its text
	several []string          // projects of arrays
	lacking int               // places of the project that were not met
	facts   Facts
	scratch []byte // for names and texts with escapes
}

// start begins a walk.
func (w *walk) start(body []byte, whole bool, project Places) {
	w.body, w.whole = body, whole
	w.seen, w.met, w.facts = 0, [members]bool{}, Facts{}
	w.project, w.lacking = project, len(project)
	w.names, w.chain, w.several = [maxPlaces]string{}, nil, nil
}

// stop drops the body, so that an idle walk does not keep it in memory.
func (w *walk) stop() {
	if w.in == &w.dec {
		w.src = bytes.Buffer{}
		w.dec.Reset(&w.src)
	}
	w.scanner.reset(nil)
	w.body, w.facts = nil, Facts{}
}

// job reads the whole job: with the scanner, or else from the beginning with the decoder, which
// says what is wrong. A body that is cut is for the decoder alone.
func (w *walk) job(root *node) error {
	if w.whole && w.scan(root) {
		return nil
	}
	return w.decode(root)
}

// scan reads the whole job with the scanner, and reports whether that worked.
func (w *walk) scan(root *node) bool {
	w.scanner.reset(w.body)
	w.in, w.left = &w.scanner, root.leaves
	if w.object(root) == nil && (w.scanner.depth > 0 || w.scanner.ended()) {
		return true
	}
	w.start(w.body, w.whole, w.project)
	return false
}

// decode reads the whole job with the decoder. Duplicate names matter only where they are
// wanted, and invalid UTF-8 is let through: most of a body is only passed on.
func (w *walk) decode(root *node) error {
	w.in = &w.dec
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
		return &bodyError{offset: w.next(), Reason: "more follows after the job's object"}
	}
	if _, err := w.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// object reads the object that n stands for, up to its end or until no wanted
// member is left.
func (w *walk) object(n *node) error {
	if _, err := w.in.ReadToken(); err != nil {
		return err
	}
	after := w.left - n.leaves
	for w.in.PeekKind() == '"' {
		name, err := w.in.ReadValue()
		if err != nil {
			return err
		}
		start := int(w.in.InputOffset()) - len(name)
		switch c := w.child(n, name); {
		case c == nil:
			_, err = w.in.ReadValue() // skipped
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
	if _, err := w.in.ReadToken(); err != nil {
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
	kind := w.in.PeekKind()
	if kind == '{' && c.want == none {
		return w.object(c)
	}
	value, err := w.in.ReadValue()
	if err != nil {
		return err
	}
	end := int(w.in.InputOffset())
	if kind == '0' && !w.whole && end == len(w.body) {
		return errEndOfHead // more digits may follow
	}
	w.left -= c.leaves
	w.meet(c.want)
	if kind == 'n' {
		return nil
	}
	if wrong := w.set(c.want, c.part, kind, value); wrong != "" {
		return w.fault(c.pointer, end-len(value), wrong)
	}
	return nil
}

// meet notes that a wanted member was met.
func (w *walk) meet(m member) {
	w.met[m] = true
	if m == project {
		w.lacking--
	}
}

// readHead sets the members that are not in the body.
func (w *walk) readHead(h Head, wanted []headMember) error {
	for _, m := range wanted {
		w.meet(m.want)
		text, wrong := m.find(h)
		if wrong == "" && text != "" {
			kind, value := jsonOf(m.want, text)
			wrong = w.set(m.want, m.part, kind, value)
		}
		if wrong != "" {
			return &headError{place: m.title(), reason: wrong}
		}
	}
	return nil
}

// join puts the project together of what its places have. It passes over those that are
// absent.
func (w *walk) join() error {
	name := w.names[0]
	if len(w.project) > 1 {
		name = strings.Join(slices.DeleteFunc(slices.Clone(w.names[:]), func(part string) bool { return part == "" }), separator)
	}
	if len(name) > MaxProject {
		return &headError{place: "the project", reason: fmt.Sprintf("is longer than %d bytes with all its parts", MaxProject)}
	}
	f := &w.facts
	switch {
	case len(w.several) > 0 && len(w.chain) > 0:
		return &headError{place: "the project", reason: "is both a text in blocks and several projects"}
	case len(w.several) > 0:
		f.Project, f.Data = set(name, w.several)
	default:
		f.Project = name
	}
	if f.Key = Key(f.Project); len(w.chain) > 0 {
		f.Data = seal(w.chain, f.Key)
	}
	return nil
}

// reading is how much was read, of a body that was cut or not. One that cannot be read is cut before its first byte.
func (w *walk) reading(cut bool) Reading {
	switch {
	case cut && len(w.body) == 0 && !w.met[project] && !w.met[priority]:
		return Unread
	case cut && (w.lacking > 0 || !w.met[priority]):
		return Partly
	case w.facts.Key == 0:
		return NoProject
	}
	return Full
}

// next returns the offset of the token to come.
func (w *walk) next() int {
	return len(w.body) - len(bytes.TrimLeft(w.body[w.in.InputOffset():], " \t\r\n:,"))
}

func (w *walk) fault(pointer string, offset int, reason string) error {
	return &bodyError{offset: offset, Pointer: pointer, Reason: reason, valid: true}
}
