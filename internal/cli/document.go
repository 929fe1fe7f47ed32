package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"example.org/pilotfish/internal/settings"
)

// maxFile bounds a file.
const maxFile = 1 << 20

// Error is one fault of a file.
type Error struct {
	File         string
	Line, Column int    // 0 when the fault has no place, as for a key that is missing
	Text         string // what is wrong, with the key it is about
}

// Error is file:line:column: text.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Text)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Text)
}

// Document is a YAML file that knows where its values stand.
type Document struct {
	name string
	text []byte
}

// NewDocument is the text of a file of that name.
func NewDocument(name string, text []byte) Document { return Document{name: name, text: text} }

// Open reads a file whole; one larger than a mebibyte is refused.
func Open(path string) (Document, error) {
	f, err := os.Open(path)
	if err != nil {
		return Document{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Document{}, fmt.Errorf("%s: %w", path, err)
	}
	if len(text) > maxFile {
		return Document{}, &Error{File: path, Text: fmt.Sprintf("the file is larger than %d bytes", maxFile)}
	}
	return NewDocument(path, text), nil
}

// Decode lays the file's one document over what into holds. A key that into
// does not know is an error, as everything wrong is: an *Error, the first.
func (d Document) Decode(into any) (err error) {
	defer d.rescue(&err)
	dec := yaml.NewDecoder(bytes.NewReader(d.text), yaml.Strict())
	if err := dec.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return d.syntax(err)
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return &Error{File: d.name, Text: "the file holds more than one document"}
	}
	return nil
}

// DecodeKey lays the value of a key, such as runs[1].workload, over what into
// holds, as Decode does the whole.
func (d Document) DecodeKey(key string, into any) (err error) {
	defer d.rescue(&err)
	node := d.node(key)
	if node == nil {
		return d.Fault(key, "is not there")
	}
	if err := yaml.NodeToValue(node, into, yaml.Strict()); err != nil {
		return d.syntax(err)
	}
	return nil
}

// rescue makes a fault of a panic: there are malformed files for which the YAML
// library has no other words.
func (d Document) rescue(err *error) {
	if r := recover(); r != nil {
		*err = &Error{File: d.name, Text: fmt.Sprintf("the file is not YAML: the library fails with %v", r)}
	}
}

// Place joins the faults, each with the place of its value where the file holds
// it; nil when there is none.
func (d Document) Place(f *settings.Faults) error {
	var all []error
	for _, one := range f.All() {
		all = append(all, d.Fault(one.Key, one.Text))
	}
	return errors.Join(all...)
}

// Fault is what is wrong with the value of a key, such as runs[1].policy, with
// the value's place where the file holds it.
func (d Document) Fault(key, text string) *Error {
	line, column := d.place(key)
	return &Error{File: d.name, Line: line, Column: column, Text: key + ": " + text}
}

// syntax says where the YAML library found a fault, without its multi-line
// excerpt of the source.
func (d Document) syntax(err error) error {
	var ye yaml.Error
	if errors.As(err, &ye) {
		at := ye.GetToken().Position
		return &Error{File: d.name, Line: at.Line, Column: at.Column, Text: ye.GetMessage()}
	}
	// A value's own parser does not know where the value stands; it quotes it.
	message, _, _ := strings.Cut(err.Error(), "\n")
	fault := &Error{File: d.name, Text: message}
	if file, perr := parser.ParseBytes(d.text, 0); perr == nil {
		for _, doc := range file.Docs {
			ast.Walk(&quoted{fault}, doc)
		}
	}
	return fault
}

// quoted looks for the first scalar that a fault's text quotes.
type quoted struct{ fault *Error }

func (q *quoted) Visit(n ast.Node) ast.Visitor {
	value, ok := n.(ast.ScalarNode)
	if ok && q.fault.Line == 0 && strings.Contains(q.fault.Text, strconv.Quote(value.GetToken().Value)) {
		at := value.GetToken().Position
		q.fault.Line, q.fault.Column = at.Line, at.Column
	}
	return q
}

// place finds the line and column of key's value; zeros when the file does
// not hold it.
func (d Document) place(key string) (line, column int) {
	node := d.node(key)
	if node == nil || node.GetToken() == nil {
		return 0, 0
	}
	at := node.GetToken().Position
	return at.Line, at.Column
}

// node is the value of a key, nil when the file does not hold it.
func (d Document) node(key string) (node ast.Node) {
	defer func() {
		if recover() != nil { // see rescue
			node = nil
		}
	}()
	path, err := yaml.PathString("$." + key)
	if err != nil {
		return nil
	}
	node, err = path.ReadNode(bytes.NewReader(d.text))
	if err != nil {
		return nil
	}
	return node
}
