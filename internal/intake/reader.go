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

// Reader reads Facts from requests. It is safe for concurrent use.
type Reader struct {
	root    *node        // members in the body
	head    []headMember // members in headers and the path
	project Places
}

// NewReader returns a Reader of the members that the settings locate, or an error
// that lists the invalid places.
func NewReader(s Settings) (*Reader, error) {
	var f settings.Faults
	root, head := s.members(&f)
	if err := f.Err(); err != nil {
		return nil, fmt.Errorf("intake: %w", err)
	}
	return &Reader{root: root, head: head, project: s.Project}, nil
}

// read reads the facts of a request. It stops as soon as all members have been
// found; the rest of the body is not checked. Up to there, the body must be valid
// JSON with at most 10,000 levels of nesting.
// Invalid UTF-8 in strings is allowed, because most strings are only forwarded. whole
// is false if only the first bytes of the body are kept: then a body that ends too
// early is not an error, and the missing members count as absent.
//
// Errors are *bodyError or headError. A duplicate member, or a duplicate object on
// the way to a member, is an error.
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

// walks holds walks for reuse. A walk on the stack would enlarge the stack of every waiting job.
var walks = sync.Pool{New: func() any { return new(walk) }}

// walk is the state of one pass over a body, guided by a tree of wanted members.
type walk struct {
	body    jsonText
	left    int            // wanted members that can still follow
	seen    [maxNodes]bool // nodes found, to detect duplicates
	met     [members]bool  // wanted members found, null or not
	project Places
	names   [MaxPlaces]string // parts of the project, by place
	chain   []Part            // blocks of the project's text
	several []string          // projects from an array
	lacking int               // places of the project not found yet
	lengths [MaxPlaces]uint64 // hashes of the parts of the length key, by place; 0 is absent
	facts   Facts
	scratch []byte // buffer for unescaped strings
}

// stop clears the walk and makes it available for reuse.
func (w *walk) stop() {
	*w = walk{scratch: w.scratch}
	walks.Put(w)
}

// errSyntax: the body is not valid JSON or ends too early. findFault distinguishes these cases.
var errSyntax = errors.New("not valid JSON")

// job parses the body, which must be one JSON object.
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

// object reads the object of node n, which starts at offset i at the given depth of nesting. It returns the object's
// end, or the body's end as soon as no wanted member is left.
func (w *walk) object(n *node, i, depth int) (end int, err error) {
	t, after := w.body, w.left-n.leaves
	if i = t.space(i + 1); t.at(i) == '}' {
		w.left = after // a duplicate of the object is an error, so its missing members cannot follow
		return i + 1, nil
	}
	for {
		name := i
		if i = t.string(name); i > len(t) {
			return 0, errSyntax
		}
		c := w.child(n, t[name:i])
		if c != nil && w.seen[c.index] {
			return 0, fault(c.pointer, name, "occurs twice")
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

// child returns the child of n with the given quoted name, or nil.
func (w *walk) child(n *node, quoted []byte) *node {
	if name, ok := w.unquote(quoted, maxPointer); ok {
		return n.child(name)
	}
	return nil
}

// member reads the value of node c, a wanted member or an object that contains some. It returns the value's end.
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
		return 0, io.ErrUnexpectedEOF // more digits may follow beyond the kept bytes: a cut number is another project
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

// meet records that a wanted member was found.
func (w *walk) meet(m member) {
	w.met[m] = true
	if m == project {
		w.lacking--
	}
}

// readHead reads the members in headers and in the path.
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

// join builds the project and the length key from the values of their places. Absent places of the project are skipped.
func (w *walk) join() error {
	name := strings.Join(slices.DeleteFunc(w.names[:], func(part string) bool { return part == "" }), separator)
	if len(name) > MaxProject {
		return headError(fmt.Sprintf("the project is longer than %d bytes with all its parts", MaxProject))
	}
	f := &w.facts
	f.LengthKey = joinLengths(w.lengths)
	switch {
	case len(w.several) > 0 && len(w.chain) > 0:
		return headError("the project has both blocks and an array of several projects")
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

// reading returns how much was read. cut means that the kept bytes end before the job does; a body that cannot be
// read counts as cut before its first byte.
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

// ReadsBody reports whether any member is in the body.
func (r *Reader) ReadsBody() bool { return r.root.leaves > 0 }
