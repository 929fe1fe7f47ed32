package config

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
)

// maxFile bounds a configuration file.
const maxFile = 1 << 20

// Error is one fault of a configuration file.
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

// Load reads a configuration file over the defaults and checks it. All that
// is wrong with its values is reported, joined; of a file that is not YAML or
// has unknown keys, the first fault.
func Load(path string) (Config, error) { return LoadOver(path, func(*Config) {}) }

// LoadOver is Load with a change laid over what the file says, before it is
// checked: what a command line overrides need not be right in the file.
func LoadOver(path string, overlay func(*Config)) (Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return Config{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	if len(text) > maxFile {
		return Config{}, &Error{File: path, Text: fmt.Sprintf("the file is larger than %d bytes", maxFile)}
	}
	return parse(path, text, overlay)
}

func parse(name string, text []byte, overlay func(*Config)) (Config, error) {
	c := Default()
	dec := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict())
	if err := dec.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
		return Config{}, syntaxError(name, text, err)
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return Config{}, &Error{File: name, Text: "the file holds more than one document"}
	}
	overlay(&c)
	var faults []error
	for _, f := range c.faults() {
		line, column := place(text, f.key)
		faults = append(faults, &Error{File: name, Line: line, Column: column, Text: f.key + ": " + f.text})
	}
	return c, errors.Join(faults...)
}

// syntaxError says where the YAML library found a fault, without its
// multi-line excerpt of the source.
func syntaxError(name string, text []byte, err error) error {
	var ye yaml.Error
	if errors.As(err, &ye) {
		at := ye.GetToken().Position
		return &Error{File: name, Line: at.Line, Column: at.Column, Text: ye.GetMessage()}
	}
	// A value's own parser does not know where the value stands; it quotes it.
	message, _, _ := strings.Cut(err.Error(), "\n")
	fault := &Error{File: name, Text: message}
	if file, perr := parser.ParseBytes(text, 0); perr == nil {
		for _, doc := range file.Docs {
			ast.Walk(&quoted{fault}, doc)
		}
	}
	return fault
}

// quoted looks for the first scalar that a fault's text quotes.
type quoted struct{ fault *Error }

func (q *quoted) Visit(n ast.Node) ast.Visitor {
	value, ok := n.(*ast.StringNode)
	if ok && q.fault.Line == 0 && strings.Contains(q.fault.Text, strconv.Quote(value.Value)) {
		at := value.GetToken().Position
		q.fault.Line, q.fault.Column = at.Line, at.Column
	}
	return q
}

// place finds the line and column of key's value; zeros when the file does
// not hold it.
func place(text []byte, key string) (line, column int) {
	path, err := yaml.PathString("$." + key)
	if err != nil {
		return 0, 0
	}
	node, err := path.ReadNode(bytes.NewReader(text))
	if err != nil || node.GetToken() == nil {
		return 0, 0
	}
	at := node.GetToken().Position
	return at.Line, at.Column
}
