package cli

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"example.org/pilotfish/internal/settings"
)

// decoder lays values of a file over Go values, and gathers what does not fit.
// The YAML library could decode too, but it names Go types in its messages and
// does not say the column.
type decoder struct {
	doc   Document
	top   reflect.Value // the whole document: an unknown key may belong elsewhere in it
	found []*Error
	left  int // nodes that may still be looked at: aliases could multiply them
}

// maxNodes is more than a file of maxFile bytes holds.
const maxNodes = 2 << 20

// decode lays the value of a key, or with "" the whole document, over what into holds.
func decode(doc Document, key string, into any) []*Error {
	if doc.err != nil {
		return []*Error{doc.err}
	}
	v := reflect.ValueOf(into).Elem()
	d := &decoder{doc: doc, top: v, left: maxNodes}
	if node := doc.at(key); node != nil {
		d.value(key, node, v)
	}
	return d.found
}

// fault notes what is wrong at a node.
func (d *decoder) fault(key string, at *yaml.Node, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if key != "" {
		text = key + ": " + text
	}
	d.found = append(d.found, &Error{File: d.doc.name, Line: at.Line, Column: at.Column, Text: text, key: key})
}

// value lays a node over a value. A null, as after a key without a value,
// leaves it as it is.
func (d *decoder) value(key string, n *yaml.Node, into reflect.Value) {
	if d.left--; d.left < 0 {
		if d.left == -1 {
			d.fault(key, n, "the file's aliases make it larger than %d values", maxNodes)
		}
		return
	}
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Tag == "!!null" {
		return
	}
	if into.Kind() == reflect.Pointer {
		if into.IsNil() {
			into.Set(fresh(into.Type().Elem()))
		}
		into = into.Elem()
	}
	_, isText := into.Addr().Interface().(encoding.TextUnmarshaler)
	short, isShort := into.Addr().Interface().(settings.Short)
	switch {
	case isShort && n.Kind == yaml.ScalarNode:
		short.SetText(n.Value)
	case isShort:
		into.Set(fresh(into.Type()).Elem()) // its keys say all of it
		d.section(key, n, into)
	case into.Kind() == reflect.Struct && !isText:
		d.section(key, n, into)
	case into.Kind() == reflect.Slice && !isText:
		d.list(key, n, into)
	case n.Kind != yaml.ScalarNode:
		d.fault(key, n, "expected %s, found %s", expected(into), kind(n))
	default:
		if err := scan(n.Value, into); err != nil {
			d.fault(key, n, "%v", err)
		}
	}
}

// fresh is a new optional section. It begins with the defaults that the method
// SetDefaults of its type sets, if there is one.
func fresh(t reflect.Type) reflect.Value {
	v := reflect.New(t)
	if section, ok := v.Interface().(interface{ SetDefaults() }); ok {
		section.SetDefaults()
	}
	return v
}

// list replaces a list whole. A list of what can be short may be its only element.
func (d *decoder) list(key string, n *yaml.Node, into reflect.Value) {
	switch {
	case n.Kind == yaml.SequenceNode:
		all := reflect.MakeSlice(into.Type(), len(n.Content), len(n.Content))
		for i, one := range n.Content {
			d.value(fmt.Sprintf("%s[%d]", key, i), one, all.Index(i))
		}
		into.Set(all)
	case isShort(into.Type().Elem()):
		one := reflect.MakeSlice(into.Type(), 1, 1)
		d.value(key, n, one.Index(0))
		into.Set(one)
	case n.Kind == yaml.ScalarNode:
		d.fault(key, n, "expected a list: write [%s]", n.Value)
	default:
		d.fault(key, n, "expected a list, found %s", kind(n))
	}
}

// isShort reports whether a file may hold a section of that type as one text.
func isShort(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[settings.Short]())
}

// section lays the keys of a section over the fields of a struct.
func (d *decoder) section(key string, n *yaml.Node, into reflect.Value) {
	fields := map[string]reflect.Value{}
	var names []string
	eachField(into, func(name string, field reflect.Value) {
		fields[name] = field
		names = append(names, name)
	})
	if n.Kind != yaml.MappingNode {
		what := "expected a section"
		if key == "" {
			what = "the file is not a list of keys and values: expected a section"
		}
		d.fault(key, n, "%s with the keys %s, found %s", what, strings.Join(names, ", "), kind(n))
		return
	}
	set := map[string]int{} // the line in which a key was set
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		inner := strings.TrimPrefix(key+"."+name.Value, ".")
		field, known := fields[name.Value]
		switch line, twice := set[name.Value]; {
		case name.Kind != yaml.ScalarNode:
			d.fault(key, name, "a key must be text, not %s", kind(name))
		case twice:
			d.fault(inner, name, "already set in line %d", line)
		case !known:
			d.fault(inner, name, "%s", d.unknown(inner, name.Value, names))
		default:
			d.value(inner, value, field)
		}
		set[name.Value] = name.Line
	}
}

// unknown is the message for an unknown key: what was probably meant, or what is known. The
// method Meant of the whole document knows words for keys that have other names.
func (d *decoder) unknown(key, name string, names []string) string {
	if top, ok := d.top.Interface().(interface{ Meant(key string) string }); ok && top.Meant(key) != "" {
		return "unknown key; did you mean " + top.Meant(key) + "?"
	}
	if meant := settings.DidYouMean(name, names); meant != "" {
		return "unknown key" + meant
	}
	var elsewhere []string
	eachKey(d.top.Type(), "", func(key string) {
		if strings.HasSuffix(key, "."+name) {
			elsewhere = append(elsewhere, key)
		}
	})
	if n := len(elsewhere); n > 0 && n <= 3 {
		return "unknown key; did you mean " + strings.Join(elsewhere, " or ") + "?"
	}
	return "unknown key; those known here are " + strings.Join(names, ", ")
}

// eachField calls f for each field that a file can set, with its key. An
// embedded struct's fields count as its owner's.
func eachField(v reflect.Value, f func(name string, field reflect.Value)) {
	for i := range v.NumField() {
		name, embedded := fieldKey(v.Type().Field(i))
		if embedded {
			eachField(v.Field(i), f)
		} else if name != "" {
			f(name, v.Field(i))
		}
	}
}

// eachKey calls f for each key of a section and the sections in it, lists and short
// sections aside.
func eachKey(t reflect.Type, prefix string, f func(key string)) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || isShort(t) {
		return
	}
	for i := range t.NumField() {
		name, embedded := fieldKey(t.Field(i))
		switch {
		case embedded:
			eachKey(t.Field(i).Type, prefix, f)
		case name != "":
			f(prefix + name)
			eachKey(t.Field(i).Type, prefix+name+".", f)
		}
	}
}

// fieldKey is the name in a field's yaml tag; "" when no file can set it.
func fieldKey(f reflect.StructField) (name string, embedded bool) {
	name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return strings.TrimPrefix(name, "-"), f.Anonymous && options == "inline"
}

// kind names what stands in a file.
func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a section"
	case yaml.SequenceNode:
		return "a list"
	}
	return strconv.Quote(n.Value)
}
