package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"example.org/pilotfish/internal/files"
)

// MaxFile bounds a file, in bytes; maxKeys bounds the keys of one of its sections.
const (
	MaxFile = 1 << 20
	maxKeys = 1000
)

// Error is a fault or warning about a file or a flag.
type Error struct {
	File         string // "" for a flag
	Line, Column int    // 0 for a flag, or the whole file
	Text         string // what is wrong, with the key or flag that it is about
	Warning      bool

	key string
}

// Error returns file:line:column: text.
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

// Document is a YAML file with the positions of its keys and values.
type Document struct {
	// Flags names the flag for each key whose value the command line has set. Faults
	// of such a value name the flag.
	Flags map[string]string

	name   string
	err    *Error   // the text is not one YAML document, or no list of keys and values
	twice  []*Error // repeated keys of a section
	values map[string]value
	names  map[place]string // the key whose name is at a position
	starts map[place]string // the key whose value starts at a position
}

// value is the value of a key.
type value struct {
	node *yaml.Node
	at   place // position for messages: of a section over several lines, that of its name
}

type place struct{ line, column int }

func placeOf(n *yaml.Node) place { return place{n.Line, n.Column} }

// Open reads a document from a file of at most MaxFile bytes.
func Open(path string) (Document, error) {
	text, err := files.Read(path, MaxFile)
	if err != nil {
		return Document{}, err
	}
	return NewDocument(path, text), nil
}

// NewDocument parses the text of a file of that name. An empty text, or one with
// only comments, is a document without keys.
func NewDocument(name string, text []byte) Document {
	d := Document{name: name, values: map[string]value{"": {at: place{1, 1}}}, names: map[place]string{}, starts: map[place]string{}}
	loader, err := yaml.NewLoader(bytes.NewReader(directive.ReplaceAll(text, []byte("${1}1"))))
	if err != nil {
		panic("BUG: " + err.Error()) // no option can be wrong
	}
	var first, second yaml.Node
	err = loader.Load(&first)
	if errors.Is(err, io.EOF) {
		return d
	}
	if err == nil {
		err = loader.Load(&second)
	}
	switch {
	case err == nil:
		d.err = d.fault(placeOf(&second), "the file contains more than one document")
		return d
	case !errors.Is(err, io.EOF):
		d.err = d.syntax(err, text)
		return d
	}
	root := &first
	if root.Kind == yaml.DocumentNode {
		root = root.Content[0]
	}
	d.index("", root, place{1, 1})
	return d
}

// directive matches a declaration of YAML 1.2. The library reads 1.2, but accepts only declarations of 1.1.
var directive = regexp.MustCompile(`\A((?:\x{FEFF})?(?:[ \t]*(?:#.*)?\r?\n)*%YAML[ \t]+1\.)2\b`)

// index records the positions of a key's value and of all values in it. It drops keys with a null value, which
// keep their defaults, and repetitions of a key. Aliases have the positions of their anchors.
func (d *Document) index(key string, n *yaml.Node, at place) {
	d.values[key] = value{n, at}
	d.starts[placeOf(n)] = key
	switch n.Kind {
	case yaml.SequenceNode:
		for i, one := range n.Content {
			d.index(fmt.Sprintf("%s[%d]", key, i), one, placeOf(one))
		}
	case yaml.MappingNode:
		if keys := len(n.Content) / 2; keys > maxKeys {
			d.err = cmp.Or(d.err, d.fault(at, strings.TrimPrefix(fmt.Sprintf("%s: a section has at most %d keys, not %d", key, maxKeys, keys), ": ")))
			return
		}
		kept, lines := n.Content[:0], map[string]int{}
		for pair := range slices.Chunk(n.Content, 2) {
			name, of := pair[0], pair[1]
			if name.Kind != yaml.ScalarNode {
				d.err = cmp.Or(d.err, d.fault(placeOf(name), "a key must be text, not "+kind(name)))
				continue
			}
			at, inner := placeOf(of), strings.TrimPrefix(key+"."+name.Value, ".")
			if line := lines[name.Value]; line > 0 {
				again := d.fault(placeOf(name), fmt.Sprintf("%s: it is set at line %d already", inner, line))
				again.key = inner
				d.twice = append(d.twice, again)
				continue
			}
			lines[name.Value] = name.Line
			if of.Style&yaml.FlowStyle == 0 && (of.Kind == yaml.MappingNode || of.Kind == yaml.SequenceNode) {
				at = placeOf(name)
			}
			d.names[placeOf(name)] = inner
			d.index(inner, of, at)
			if of.Tag != "!!null" {
				kept = append(kept, name, of)
			}
		}
		n.Content = kept
	}
}

// Rename renames a key with an old name to its present name in the same section, and returns a warning. It
// returns nil if the file does not have the old name, or has both.
func (d Document) Rename(old, name string) *Error {
	was, there := d.values[old]
	section, from := cutLast(old)
	of := d.values[section].node
	if _, both := d.values[name]; !there || both || of == nil {
		return nil
	}
	_, to := cutLast(name)
	for pair := range slices.Chunk(of.Content, 2) {
		if pair[0].Value != from {
			continue
		}
		pair[0].Value = to
		d.values[name] = was
		d.names[placeOf(pair[0])] = name
		d.starts[placeOf(was.node)] = name
		delete(d.values, old)
		warning := d.fault(placeOf(pair[0]), old+": the key is now "+name+"; the old name still works")
		warning.Warning = true
		return warning
	}
	return nil
}

// cutLast separates a key from its section.
func cutLast(key string) (section, name string) {
	i := strings.LastIndexByte(key, '.')
	return key[:max(i, 0)], key[i+1:]
}

func (d Document) fault(at place, text string) *Error {
	return &Error{File: d.name, Line: at.line, Column: at.column, Text: text}
}

// syntax translates a syntax error of the library.
func (d Document) syntax(err error, text []byte) *Error {
	var found *yaml.LoadError
	if !errors.As(err, &found) {
		return d.fault(place{1, 1}, "not YAML: "+err.Error())
	}
	at := place{found.Mark.Line, found.Mark.Column}
	if at.line == 0 { // a character that YAML forbids: the library does not report its position
		at = forbidden(text)
	}
	lines := bytes.Split(text, []byte("\n"))
	if tab := tabIn.FindIndex(lines[min(at.line, len(lines))-1]); tab != nil {
		return d.fault(place{at.line, tab[1]}, "not YAML: a tab cannot indent a line; use spaces")
	}
	return d.fault(at, "not YAML: "+strings.TrimPrefix(found.ContextMsg+": ", ": ")+found.Message)
}

// tabIn matches a tab in the indentation of a line.
var tabIn = regexp.MustCompile(`^ *\t`)

// forbidden returns the position of the first invalid UTF-8 or control character.
func forbidden(text []byte) place {
	n := max(0, bytes.IndexFunc(text, func(r rune) bool {
		return r == utf8.RuneError || r < ' ' && !strings.ContainsRune("\t\r\n", r) || r >= 0x7f && r < 0xa0 && r != 0x85
	}))
	before := text[:n]
	line := bytes.Count(before, []byte("\n"))
	return place{line + 1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1}
}

// kind describes a value of the file.
func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a section"
	case yaml.SequenceNode:
		return "a list"
	}
	return strconv.Quote(n.Value)
}
