package intake

import (
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
// must be valid JSON, nested 10,000 levels at most, which cost a
// few MiB of stack. Strings may hold invalid UTF-8, because most of them are only
// passed on. If only the beginning of the body is kept, it is not whole; a job that
// goes on beyond that is no error, and later members count as absent.
//
// Errors are *bodyError or headError. It is an error if a member, or
// an object on the way to one, is there twice.
func (r *Reader) read(h Head, body []byte, whole bool) (Facts, Reading, error) {
	w := walks.Get().(*walk)
	defer w.stop()
	w.body, w.left = body, r.root.leaves
	w.project, w.lacking = r.project, len(r.project)
	var err error
	if w.left > 0 {
		err = w.job(r.root)
	}
	cut := !whole && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
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

// walks are idle ones. They are not on the stack: that of a job that waits is small.
var walks = sync.Pool{New: func() any { return new(walk) }}

// walk is one pass over one body, in step with a tree of wanted members.
type walk struct {
	body    jsonText
	left    int            // wanted members that may still come
	seen    [maxNodes]bool // nodes that were met
	met     [members]bool  // wanted members that were met, null or not
	project Places
	names   [maxPlaces]string // the project's, by its places
	chain   []Part            // blocks of its text
	several []string          // projects of arrays
	lacking int               // places of the project that were not met
	facts   Facts
	scratch []byte // for names and texts with escapes
}

// stop keeps the walk for another body, and nothing of this one.
func (w *walk) stop() {
	*w = walk{scratch: w.scratch}
	walks.Put(w)
}

// errSyntax: the body is not valid JSON, or is cut. findFault tells which.
var errSyntax = errors.New("not valid JSON")

// job reads the whole job.
func (w *walk) job(root *node) error {
	if len(w.body) == 0 {
		return io.EOF
	}
	begin, end, err := w.body.space(0), 0, errSyntax
	if w.body.at(begin) == '{' {
		end, err = w.object(root, begin, 0)
	}
	if errors.Is(err, errSyntax) || err == nil && w.body.space(end) < len(w.body) {
		return findFault(w.body)
	}
	return err
}

// object reads the object that n stands for, within so many others. It returns its end, or that of the body when no
// wanted member is left.
func (w *walk) object(n *node, i, depth int) (end int, err error) {
	t, after := w.body, w.left-n.leaves
	if i = t.space(i + 1); t.at(i) == '}' {
		w.left = after // the object may not come again, so what it lacks will not come
		return i + 1, nil
	}
	for {
		name := i
		if i = t.string(name); i > len(t) {
			return 0, errSyntax
		}
		c := w.child(n, t[name:i])
		if c != nil && w.seen[c.index] {
			return 0, fault(c.pointer, name, "is there twice")
		}
		if i = t.space(i); t.at(i) != ':' {
			return 0, errSyntax
		}
		i = t.space(i + 1)
		if c == nil {
			i = t.value(i, depth+1) // skipped
		} else if i, err = w.member(c, i, depth+1); err != nil || w.left == 0 {
			return len(t), err
		}
		i = t.space(i)
		switch t.at(i) {
		case ',':
			i = t.space(i + 1)
		case '}':
			w.left = after
			return i + 1, nil
		default:
			return 0, errSyntax
		}
	}
}

// child returns the child of n that a quoted name stands for, or nil.
func (w *walk) child(n *node, quoted []byte) *node {
	if name, ok := w.unquote(quoted, maxPointer); ok {
		return n.child(name)
	}
	return nil
}

// member reads the value of c: a wanted member, or an object on the way to some. It returns its end.
func (w *walk) member(c *node, i, depth int) (end int, err error) {
	w.seen[c.index] = true
	if w.body.at(i) == '{' && c.want == none {
		return w.object(c, i, depth)
	}
	if end = w.body.value(i, depth); end > len(w.body) {
		return 0, errSyntax
	}
	value := jsontext.Value(w.body[i:end])
	kind := value.Kind()
	if kind == '0' && end == len(w.body) {
		return 0, io.ErrUnexpectedEOF // more digits may have followed: half a project is another project
	}
	w.left -= c.leaves
	w.meet(c.want)
	if kind == 'n' {
		return end, nil
	}
	if wrong := w.set(c.want, c.part, kind, value); wrong != "" {
		return 0, fault(c.pointer, i, wrong)
	}
	return end, nil
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
			return headError(m.title() + " " + wrong)
		}
	}
	return nil
}

// join puts the project together of what its places have. It passes over those that are
// absent.
func (w *walk) join() error {
	name := strings.Join(slices.DeleteFunc(w.names[:], func(part string) bool { return part == "" }), separator)
	if len(name) > MaxProject {
		return headError(fmt.Sprintf("the project is longer than %d bytes with all its parts", MaxProject))
	}
	f := &w.facts
	switch {
	case len(w.several) > 0 && len(w.chain) > 0:
		return headError("the project is both a text in blocks and several projects")
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

// ReadsBody reports whether a member is read from the body.
func (r *Reader) ReadsBody() bool { return r.root.leaves > 0 }
