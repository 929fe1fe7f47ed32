package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
)

// option is a flag or an argument of a command: a field of its struct.
type option struct {
	name     string
	tag      reflect.StructTag
	field    reflect.Value
	initial  string // the text of its default; "" is none
	argument bool   // it is no flag
	required bool
	given    bool
}

func newOption(f reflect.StructField, field reflect.Value) *option {
	o := &option{name: f.Tag.Get("name"), tag: f.Tag, field: field, initial: f.Tag.Get("default")}
	if o.name == "" {
		o.name = hyphenated(f.Name)
	}
	switch length, isDuration := field.Interface().(time.Duration); {
	case o.initial != "":
		if err := o.Set(o.initial); err != nil {
			panic(fmt.Sprintf("BUG: the default of %s: %v", f.Name, err))
		}
		o.given = false
	case isDuration && length != 0:
		o.initial = shortest(length)
	case !field.IsZero():
		o.initial = fmt.Sprint(field.Interface())
	}
	_, o.required = f.Tag.Lookup("required")
	if _, o.argument = f.Tag.Lookup("arg"); o.argument {
		_, optional := f.Tag.Lookup("optional")
		o.required = !optional && o.initial == ""
	}
	return o
}

// hyphenated is a field's name as a flag's: TokenFile is token-file.
func hyphenated(name string) string {
	var b strings.Builder
	small := false
	for _, r := range name {
		if small && unicode.IsUpper(r) {
			b.WriteByte('-')
		}
		small = !unicode.IsUpper(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Set implements pflag.Value. A list takes one value each time.
func (o *option) Set(text string) (err error) {
	if kind := o.tag.Get("type"); kind != "" {
		if text, err = located(kind, text); err != nil {
			return err
		}
	}
	into := o.field
	if o.isList() {
		if !o.given { // the default
			o.field.SetZero()
		}
		o.field.Set(reflect.Append(o.field, reflect.Zero(o.field.Type().Elem())))
		into = o.field.Index(o.field.Len() - 1)
	}
	o.given = true
	return scan(text, into)
}

// String implements pflag.Value.
func (o *option) String() string { return o.initial }

// Type implements pflag.Value: it is what help shows in place of the value.
func (o *option) Type() string {
	kind := o.field.Type()
	switch text := o.tag.Get("placeholder"); {
	case text != "":
		return text
	case o.isSwitch():
		return "bool" // which help leaves out
	case o.isList():
		kind = kind.Elem()
	}
	return strings.ToUpper(kind.Name())
}

func (o *option) isList() bool { return o.field.Kind() == reflect.Slice }

func (o *option) isSwitch() bool { return o.field.Kind() == reflect.Bool }

// check refuses a word that the option cannot be.
func (o *option) check() error {
	enum, got := o.tag.Get("enum"), o.field.String()
	if enum == "" || slices.Contains(strings.Split(enum, ","), got) {
		return nil
	}
	return fmt.Errorf("%s must be one of \"%s\" but got %q", o.title(), strings.ReplaceAll(enum, ",", `","`), got)
}

// title is its name in messages.
func (o *option) title() string {
	if o.argument {
		return "<" + o.name + ">"
	}
	return "--" + o.name
}

// usage is how it is written: --name=VALUE, <name> or [<name>].
func (o *option) usage() string {
	text := o.title()
	switch {
	case o.argument && o.isList():
		text += " ..."
	case !o.argument && !o.isSwitch():
		text += "=" + o.Type()
	}
	if o.argument && !o.required {
		return "[" + text + "]"
	}
	return text
}

// located makes the name of a file of a kind absolute, and checks what the kind asks for.
func located(kind, path string) (string, error) {
	if path == "-" || path == "" {
		return path, nil
	}
	if home, err := os.UserHomeDir(); err == nil && strings.HasPrefix(path, "~/") {
		path = filepath.Join(home, path[2:])
	}
	path, err := filepath.Abs(path)
	if err != nil || kind == "path" {
		return path, err
	}
	switch info, err := os.Stat(path); {
	case err != nil:
		return "", err
	case kind == "existingfile" && info.IsDir():
		return "", fmt.Errorf("%q is a directory", path)
	case kind == "existingdir" && !info.IsDir():
		return "", fmt.Errorf("%q is not a directory", path)
	}
	return path, nil
}
