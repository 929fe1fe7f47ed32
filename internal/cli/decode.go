package cli

import (
	"cmp"
	"errors"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"example.org/pilotfish/internal/settings"
)

// Decode decodes the document into a value that holds the defaults, and calls check for the
// result. It returns the joined faults, each an *Error, in the file's order, and
// the warnings. It drops faults that check reports for values of a wrong type.
func (d Document) Decode(into any, check func(*settings.Faults)) (warnings []*Error, err error) {
	if d.err != nil {
		return nil, d.err
	}
	misfits := d.variables()
	for _, e := range d.lay("", into) {
		if !slices.ContainsFunc(misfits, func(v *Error) bool { return v.key == e.key }) {
			misfits = append(misfits, e)
		}
	}
	if len(misfits) == 1 && misfits[0].key == "" { // it concerns the whole document
		return nil, misfits[0]
	}
	var f settings.Faults
	check(&f)
	all := slices.Clone(misfits)
	for _, one := range f.All() {
		if !slices.ContainsFunc(misfits, func(e *Error) bool { return related(e.key, one.Key) }) {
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

// DecodeKey decodes the value of a key, such as runs[1].workload. Decode has reported its
// faults.
func (d Document) DecodeKey(key string, into any) { d.lay(key, into) }

// place adds the position of its value to a fault, or the position of the innermost section in the file.
func (d Document) place(f settings.Fault) *Error {
	for key, flag := range d.Flags {
		if within(f.Key, key) {
			return &Error{Text: flag + ": " + f.Text, Warning: f.Warning}
		}
	}
	e := &Error{File: d.name, Text: f.Key + ": " + f.Text, Warning: f.Warning}
	for key := f.Key; d.name != "" && e.Line == 0; key = key[:max(0, strings.LastIndexAny(key, ".["))] {
		e.Line, e.Column = d.values[key].at.line, d.values[key].at.column
	}
	return e
}

// related reports whether a key equals, contains or is inside of one with a wrong type. An element with a wrong
// type concerns its whole list.
func related(misfit, key string) bool {
	misfit, _, _ = strings.Cut(misfit, "[")
	return within(misfit, key) || within(key, misfit)
}

// within reports whether a key is outer or is in its section.
func within(key, outer string) bool {
	rest, ok := strings.CutPrefix(key, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// maxMisfits bounds the reported values of a wrong type.
const maxMisfits = 100

// lay decodes the value of a key, or the whole document for "", and returns the values of a wrong type.
func (d Document) lay(key string, into any) (misfits []*Error) {
	node := d.values[key].node
	if node == nil {
		return nil
	}
	err := node.Load(into, yaml.WithKnownFields())
	var one *yaml.LoadError
	var several *yaml.LoadErrors
	switch {
	case errors.As(err, &several):
		for _, e := range several.Errors[:min(len(several.Errors), maxMisfits)] {
			misfits = append(misfits, d.misfit(e, into))
		}
	case errors.As(err, &one):
		misfits = []*Error{d.misfit(one, into)}
	}
	return misfits
}

// The library's messages about unknown keys and wrong types, which name Go types.
var (
	oddKey   = regexp.MustCompile(`(?s)^field .* (not found|already set) in type`)
	oddValue = regexp.MustCompile(`(?s)^cannot construct .* into (\S+)`)
)

// misfit translates an error of the library to one about the file's keys.
func (d Document) misfit(found *yaml.LoadError, into any) *Error {
	at := place{found.Mark.Line, found.Mark.Column}
	key, text := d.starts[at], found.Message
	if odd := oddKey.FindStringSubmatch(text); odd != nil {
		key, text = d.names[at], "already set above"
		if odd[1] == "not found" {
			text = unknown(key, into)
		}
	} else if odd := oddValue.FindStringSubmatch(text); odd != nil {
		value := d.values[key].node
		text = "expected " + expected(odd[1], keysWithin(key, into)) + ", found " + kind(value)
		switch {
		case strings.HasPrefix(odd[1], "[]") && value.Kind == yaml.ScalarNode:
			text = "expected a list: write [" + value.Value + "]"
		case value.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 && fits(value.Value, odd[1]):
			text += ": remove the quotes, which make it text"
		case odd[1] == "float64" && strings.HasSuffix(value.Value, "%"):
			text += "; write 20% as 0.2"
		}
	}
	if meant := meantBy(into, key); meant != "" && !strings.HasPrefix(text, "unknown key") {
		text += "; did you mean " + meant + "?"
	}
	e := d.fault(at, text)
	if e.key = key; key != "" {
		e.Text = key + ": " + text
	}
	return e
}

// fits reports whether a text, without its quotes, is a valid value of a Go type.
func fits(text, typ string) bool {
	switch typ {
	case "bool":
		return text == "true" || text == "false"
	case "int", "int64":
		_, err := strconv.ParseInt(text, 0, 64)
		return err == nil
	case "uint64":
		_, err := strconv.ParseUint(text, 0, 64)
		return err == nil
	case "float64":
		_, err := strconv.ParseFloat(text, 64)
		return err == nil
	}
	return false
}

// plainly describes the values of Go types.
var plainly = map[string]string{
	"string": "text", "bool": "true or false", "int": "a whole number", "int64": "a whole number", "uint64": "a whole number from 0 on",
	"float64": "a number", "time.Duration": "a duration with its unit, such as 500ms, 5s or 2m",
}

// expected describes the values of a Go type, or a section with these keys.
func expected(typ string, keys []string) string {
	switch {
	case plainly[typ] != "":
		return plainly[typ]
	case strings.HasPrefix(typ, "["):
		return "a list"
	case len(keys) > 0:
		return "a section with the keys " + strings.Join(keys, ", ")
	}
	return "a value"
}

// variable matches a reference to an environment variable.
var variable = regexp.MustCompile(`\$\{\w+\}`)

// variables returns faults for values that refer to environment variables, which are not supported.
func (d Document) variables() (misfits []*Error) {
	for key, v := range d.values {
		if v.node == nil || v.node.Kind != yaml.ScalarNode || len(misfits) == maxMisfits {
			continue
		}
		if name := variable.FindString(v.node.Value); name != "" {
			e := d.fault(v.at, key+": "+name+" is not replaced: environment variables have no meaning in the file")
			e.key = key
			misfits = append(misfits, e)
		}
	}
	return misfits
}

// meantBy returns the suggestion for a key from the method Meant of the document's type, if it has one.
func meantBy(into any, key string) string {
	if top, ok := into.(interface{ Meant(key string) string }); ok {
		return top.Meant(key)
	}
	return ""
}

// unknown returns the message for an unknown key, with a suggestion or the known keys.
func unknown(key string, into any) string {
	if meant := meantBy(into, key); meant != "" {
		return "unknown key; did you mean " + meant + "?"
	}
	cut := strings.LastIndex(key, ".")
	name, known := key[cut+1:], keysWithin(key[:max(cut, 0)], into)
	if meant := settings.DidYouMean(name, known); meant != "" {
		return "unknown key" + meant
	}
	elsewhere := slices.DeleteFunc(keysOf(reflect.TypeOf(into), ""), func(k string) bool { return !strings.HasSuffix(k, "."+name) })
	if n := len(elsewhere); n > 0 && n <= 3 {
		return "unknown key; did you mean " + strings.Join(elsewhere, " or ") + "?"
	}
	return "unknown key; those known here are " + strings.Join(known, ", ")
}

var element = regexp.MustCompile(`\[\d+\]`)

// keysWithin returns the names of the keys in a section.
func keysWithin(section string, into any) (names []string) {
	section = strings.TrimPrefix(element.ReplaceAllString(section, "")+".", ".")
	for _, key := range keysOf(reflect.TypeOf(into), "") {
		if name, ok := strings.CutPrefix(key, section); ok && !strings.Contains(name, ".") {
			names = append(names, name)
		}
	}
	return names
}

// keysOf returns the keys of a type, including those of its sections and lists.
func keysOf(t reflect.Type, prefix string) (all []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "" && name != "-" {
			all = append(all, prefix+name)
			all = append(all, keysOf(f.Type, prefix+name+".")...)
		}
	}
	return all
}

// Encode writes a struct as YAML that Decode can read. It omits sections that
// are nil and replaces passwords in URLs by xxxxx.
func Encode(from any) (text []byte) {
	var n yaml.Node
	err := n.Dump(from)
	if err == nil {
		tidy(&n)
		text, err = yaml.Dump(&n)
	}
	if err != nil {
		panic("BUG: " + err.Error()) // a field has a type that YAML does not know
	}
	return text
}

// tidy drops null values, hides passwords, and writes lists in one line.
func tidy(n *yaml.Node) {
	switch n.Kind {
	case yaml.SequenceNode:
		n.Style |= yaml.FlowStyle
	case yaml.MappingNode:
		n.Content = slices.Concat(slices.DeleteFunc(slices.Collect(slices.Chunk(n.Content, 2)), func(pair []*yaml.Node) bool {
			return pair[1].Tag == "!!null"
		})...)
	case yaml.ScalarNode:
		if u, err := url.Parse(n.Value); err == nil && u.User != nil {
			n.Value = u.Redacted()
		}
	}
	for _, inner := range n.Content {
		tidy(inner)
	}
}
