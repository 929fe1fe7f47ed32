package cli

import (
	"cmp"
	"errors"
	"net/url"
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
	misfits := append(d.variables(), d.twice[:min(len(d.twice), maxMisfits)]...)
	for _, e := range d.DecodeKey("", into) {
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

// maxMisfits bounds the reported values of a wrong type.
const maxMisfits = 100

// DecodeKey decodes the value of a key, such as runs[1].workload, or the whole document for "". It returns the values of a wrong
// type, which Decode also reports.
func (d Document) DecodeKey(key string, into any) (misfits []*Error) {
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
	oddKey   = regexp.MustCompile(`(?s)^field .* not found in type`)
	oddValue = regexp.MustCompile(`(?s)^cannot construct .* into (\S+)`)
)

// misfit translates an error of the library to one about the file's keys.
func (d Document) misfit(found *yaml.LoadError, into any) *Error {
	at := place{found.Mark.Line, found.Mark.Column}
	key, text := d.starts[at], found.Message
	if oddKey.MatchString(text) {
		key = d.names[at]
		text = unknown(key, into)
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
