package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"example.org/pilotfish/internal/settings"
)

// maxFile bounds a file.
const maxFile = 1 << 20

// Error is one fault or warning about a file.
type Error struct {
	File         string // "" when a flag is at fault
	Line, Column int    // 0 when the whole file is at fault, or a flag
	Text         string // what is wrong, with the key or flag that it is about
	Warning      bool

	key string
}

// Error is file:line:column: text.
func (e *Error) Error() string {
	text := e.Text
	if e.Warning {
		text = "warning: " + text
	}
	switch {
	case e.File == "":
		return text
	case e.Line == 0:
		return e.File + ": " + text
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, text)
}

// Document is a YAML file that knows where its values stand.
type Document struct {
	// Flags names the flag for each key whose value a command line has set. A
	// fault of such a value is told as the flag's.
	Flags map[string]string

	name string
	root *yaml.Node // nil for an empty document
	err  *Error     // the text is not one YAML document
}

// Open reads a file whole; one larger than a mebibyte is refused.
func Open(path string) (Document, error) {
	f, err := os.Open(path)
	if err != nil {
		return Document{}, err
	}
	defer f.Close()
	return Read(path, f)
}

// Read is Open for a text that is in no file, such as standard input. Faults show name as the file's.
func Read(name string, r io.Reader) (Document, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return Document{}, fmt.Errorf("%s: %w", name, err)
	}
	if len(text) > maxFile {
		return Document{}, &Error{File: name, Text: fmt.Sprintf("the file is larger than %d bytes", maxFile)}
	}
	return NewDocument(name, text), nil
}

// NewDocument is the text of a file of that name. An empty text, or one of
// comments only, is a document without a key.
func NewDocument(name string, text []byte) Document {
	d := Document{name: name}
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		panic("BUG: " + err.Error()) // no option can be wrong
	}
	var first, second yaml.Node
	switch err := loader.Load(&first); {
	case errors.Is(err, io.EOF):
		return d
	case err != nil:
		d.err = d.syntax(err, text)
		return d
	}
	switch err := loader.Load(&second); {
	case err == nil:
		d.err = &Error{File: name, Line: second.Line, Column: second.Column, Text: "the file holds more than one document"}
	case !errors.Is(err, io.EOF):
		d.err = d.syntax(err, text)
	}
	d.root = &first
	if first.Kind == yaml.DocumentNode {
		d.root = first.Content[0]
	}
	return d
}

// Name is the name of the file.
func (d Document) Name() string { return d.name }

// syntax says in one line where the YAML library found a fault.
func (d Document) syntax(err error, text []byte) *Error {
	var at *yaml.LoadError
	if !errors.As(err, &at) {
		return &Error{File: d.name, Line: 1, Column: 1, Text: "not YAML: " + err.Error()}
	}
	line, column := at.Mark.Line, at.Mark.Column
	if line == 0 { // a character that YAML forbids: the library does not say where
		line, column = forbidden(text)
	}
	if tab := tabIn(text, line); tab > 0 {
		return &Error{File: d.name, Line: line, Column: tab, Text: "not YAML: a tab cannot indent a line; use spaces"}
	}
	return &Error{File: d.name, Line: line, Column: column, Text: strings.TrimSpace("not YAML: " + strings.TrimPrefix(at.ContextMsg+": ", ": ") + at.Message)}
}

// tabIn is the column of a tab in the indent of a line; 0 without one.
func tabIn(text []byte, line int) int {
	lines := bytes.SplitN(text, []byte("\n"), line+1)
	if line > len(lines) {
		return 0
	}
	this := lines[line-1]
	indent := this[:len(this)-len(bytes.TrimLeft(this, " \t"))]
	return bytes.IndexByte(indent, '\t') + 1
}

// forbidden finds the first byte that is not UTF-8, or a control character.
func forbidden(text []byte) (line, column int) {
	line, column = 1, 1
	for _, r := range string(text) {
		switch {
		case r == '\n':
			line, column = line+1, 1
		case r == '\uFFFD' || r < ' ' && r != '\t' && r != '\r' || r >= 0x7f && r < 0xa0 && r != 0x85:
			return line, column
		default:
			column++
		}
	}
	return 1, 1
}

// Decode lays the document over what into holds, and has check look at the
// result. It returns all faults joined, each an *Error, in the file's order, and
// the warnings. What check says about a value that did not fit is left out.
func (d Document) Decode(into any, check func(*settings.Faults)) (warnings []*Error, err error) {
	if d.err != nil {
		return nil, d.err
	}
	all := decode(d, "", into)
	misfits := len(all)
	var f settings.Faults
	check(&f)
	for _, one := range f.All() {
		if !slices.ContainsFunc(all[:misfits], func(e *Error) bool { return related(e.key, one.Key) }) {
			all = append(all, d.place(one))
		}
	}
	slices.SortStableFunc(all, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	var faults []error
	for _, e := range all {
		if e.Warning {
			warnings = append(warnings, e)
		} else {
			faults = append(faults, e)
		}
	}
	return warnings, errors.Join(faults...)
}

// DecodeKey lays the value of a key, such as runs[1].workload, over what into holds. Decode
// has found its faults.
func (d Document) DecodeKey(key string, into any) { decode(d, key, into) }

// place is the fault with the place of its value or, where the file does not hold that, of the
// section that it would stand in.
func (d Document) place(f settings.Fault) *Error {
	for key, flag := range d.Flags {
		if within(f.Key, key) {
			return &Error{Text: flag + ": " + f.Text, Warning: f.Warning, key: f.Key}
		}
	}
	e := &Error{File: d.name, Text: f.Key + ": " + f.Text, Warning: f.Warning, key: f.Key}
	if d.name != "" {
		e.Line, e.Column = d.position(f.Key)
	}
	return e
}

// related says whether one of two keys is the other, or a section around it.
func related(a, b string) bool { return within(a, b) || within(b, a) }

// within says whether a key is the outer one, or in its section.
func within(key, outer string) bool {
	rest, ok := strings.CutPrefix(key, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// position is where the value of a key stands, or the name of a section or list
// that goes over lines. For a key that the file does not hold, it is that of the
// innermost section around it.
func (d Document) position(key string) (line, column int) {
	line, column = 1, 1
	node := d.root
	for _, part := range parts(key) {
		name, value := child(node, part)
		if value == nil {
			break
		}
		node = value
		at := value
		if block := value.Style&yaml.FlowStyle == 0; block && value.Kind != yaml.ScalarNode && name != nil {
			at = name
		}
		line, column = at.Line, at.Column
	}
	return line, column
}

// at is the value of a key; nil when the file does not hold it.
func (d Document) at(key string) *yaml.Node {
	node := d.root
	for _, part := range parts(key) {
		_, node = child(node, part)
	}
	return node
}

// parts are the steps from the outside to a key: runs, [1] and policy for
// runs[1].policy.
func parts(key string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(key, "[", ".["), func(r rune) bool { return r == '.' })
}

// child is what stands in a section under a name, or in a list at [n]; name is
// nil in a list.
func child(in *yaml.Node, part string) (name, value *yaml.Node) {
	for in != nil && in.Kind == yaml.AliasNode {
		in = in.Alias
	}
	switch {
	case in == nil:
	case in.Kind == yaml.SequenceNode:
		n, err := strconv.Atoi(strings.Trim(part, "[]"))
		if err == nil && n >= 0 && n < len(in.Content) {
			return nil, in.Content[n]
		}
	case in.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(in.Content); i += 2 {
			if in.Content[i].Value == part {
				return in.Content[i], in.Content[i+1]
			}
		}
	}
	return nil, nil
}
