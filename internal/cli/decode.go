package cli

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"example.org/pilotfish/internal/settings"
)

// decoder lays values of a file over Go values, and gathers what does not fit.
// The YAML library could decode too, but it names Go types in its messages and
// does not say the column.
type decoder struct {
	doc   Document
	top   reflect.Type // of the whole document: an unknown key may belong elsewhere in it
	found []*Error
	left  int // nodes that may still be looked at: aliases could multiply them
}

// maxNodes is more than a file of maxFile bytes holds.
const maxNodes = 2 << 20

func decode(d Document, into any) []*Error { return decodeAt(d, "", into) }

func decodeAt(doc Document, key string, into any) []*Error {
	if doc.err != nil {
		return []*Error{doc.err}
	}
	v := reflect.ValueOf(into).Elem()
	d := &decoder{doc: doc, top: v.Type(), left: maxNodes}
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
	text, isText := into.Addr().Interface().(encoding.TextUnmarshaler)
	short, isShort := into.Addr().Interface().(settings.Short)
	switch {
	case isShort && n.Kind == yaml.ScalarNode:
		short.SetText(n.Value)
	case isShort:
		into.SetZero() // its keys say all of it
		d.section(key, n, into)
	case isText:
		d.scalar(key, n, "a value", func(s string) error { return text.UnmarshalText([]byte(s)) })
	case into.Type() == reflect.TypeFor[time.Duration]():
		d.scalar(key, n, "a duration such as 5s", func(s string) error {
			length, err := duration(s)
			into.SetInt(int64(length))
			return err
		})
	case into.Kind() == reflect.Struct:
		d.section(key, n, into)
	case into.Kind() == reflect.Slice:
		d.list(key, n, into)
	default:
		d.plain(key, n, into)
	}
}

// fresh is a new section with its defaults, which a type of an optional section
// has in a method SetDefaults.
func fresh(t reflect.Type) reflect.Value {
	v := reflect.New(t)
	if section, ok := v.Interface().(interface{ SetDefaults() }); ok {
		section.SetDefaults()
	}
	return v
}

// scalar has read look at the text of a single value.
func (d *decoder) scalar(key string, n *yaml.Node, what string, read func(string) error) {
	if n.Kind != yaml.ScalarNode {
		d.fault(key, n, "expected %s, found %s", what, kind(n))
		return
	}
	if err := read(n.Value); err != nil {
		d.fault(key, n, "%v", err)
	}
}

// plain reads text, a number, or true or false.
func (d *decoder) plain(key string, n *yaml.Node, into reflect.Value) {
	switch into.Kind() {
	case reflect.String:
		d.scalar(key, n, "text", func(s string) error { into.SetString(s); return nil })
	case reflect.Bool:
		d.scalar(key, n, "true or false", func(s string) error {
			on := strings.EqualFold(s, "true")
			if !on && !strings.EqualFold(s, "false") {
				return fmt.Errorf("%q is neither true nor false", s)
			}
			into.SetBool(on)
			return nil
		})
	case reflect.Int, reflect.Int64, reflect.Uint64:
		d.scalar(key, n, "a whole number", func(s string) error { return whole(s, into) })
	case reflect.Float64:
		d.scalar(key, n, "a number", func(s string) error {
			f, err := strconv.ParseFloat(strings.Replace(s, ".", "", dotted(s)), 64)
			if err != nil {
				return fmt.Errorf("%q is not a number", s)
			}
			into.SetFloat(f)
			return nil
		})
	default:
		panic(fmt.Sprintf("BUG: %s is a %v, which no file can set", key, into.Type()))
	}
}

// whole reads a whole number.
func whole(s string, into reflect.Value) error {
	switch n, err := strconv.ParseInt(s, 10, 64); {
	case into.CanUint():
		u, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a whole number from 0 on", s)
		}
		into.SetUint(u)
	case err != nil || into.OverflowInt(n):
		return fmt.Errorf("%q is not a whole number", s)
	default:
		into.SetInt(n)
	}
	return nil
}

// dotted is 1 for YAML's .nan and .inf, which Go writes without the dot.
func dotted(s string) int {
	switch strings.ToLower(strings.TrimLeft(s, "+-")) {
	case ".nan", ".inf":
		return 1
	}
	return 0
}

// duration reads a duration. A number without a unit is refused: some read it as
// seconds, some as milliseconds.
func duration(s string) (time.Duration, error) {
	length, err := time.ParseDuration(s)
	if err == nil {
		return length, nil
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return 0, fmt.Errorf("%s has no unit: write %ss", s, s)
	}
	return 0, fmt.Errorf("%q is not a duration such as 500ms, 5s or 2m", s)
}

// list replaces a list whole. A list of what can be short may be its only element.
func (d *decoder) list(key string, n *yaml.Node, into reflect.Value) {
	if n.Kind != yaml.SequenceNode && isShort(into.Type().Elem()) {
		one := reflect.MakeSlice(into.Type(), 1, 1)
		d.value(key, n, one.Index(0))
		into.Set(one)
		return
	}
	if n.Kind != yaml.SequenceNode {
		if n.Kind == yaml.ScalarNode {
			d.fault(key, n, "expected a list: write [%s]", n.Value)
		} else {
			d.fault(key, n, "expected a list, found %s", kind(n))
		}
		return
	}
	all := reflect.MakeSlice(into.Type(), len(n.Content), len(n.Content))
	for i, one := range n.Content {
		d.value(fmt.Sprintf("%s[%d]", key, i), one, all.Index(i))
	}
	into.Set(all)
}

// isShort says whether a file may write a section of that type as one text.
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
			d.fault(inner, name, "%s", d.unknown(name.Value, names))
		default:
			d.value(inner, value, field)
		}
		set[name.Value] = name.Line
	}
}

// unknown says what a key that is not known could mean.
func (d *decoder) unknown(name string, names []string) string {
	if meant := settings.DidYouMean(name, names); meant != "" {
		return "unknown key" + meant
	}
	var elsewhere []string
	eachKey(d.top, "", func(key string) {
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
