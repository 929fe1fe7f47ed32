package manual

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/settings"
)

// Keys generates the reference of all keys of a configuration, from the comments of its fields. defaults points to a struct
// with the defaults. first are the keys that most files need, in order; all others are advanced. encode formats a value as
// in a file.
func Keys(t *testing.T, defaults any, first []string, encode func(any) []byte) string {
	t.Helper()
	m := &keys{t: t, comments: NewComments(t), first: first, encode: encode}
	return m.text(reflect.ValueOf(defaults).Elem())
}

// keys writes the reference.
type keys struct {
	t        *testing.T
	comments *Comments
	first    []string
	encode   func(any) []byte
}

func (m *keys) text(v reflect.Value) string {
	type section struct{ title, about, rows string }
	sections := []section{{title: "Ports and hosts"}}
	rows := map[string]string{}
	add := func(full, row string) {
		if slices.Contains(m.first, full) {
			_, rest, _ := strings.Cut(row, "`") // the name of the key in its section
			_, rest, _ = strings.Cut(rest, "`")
			rows[full] = "| `" + full + "`" + rest
			return
		}
		sections[len(sections)-1].rows += row
	}
	m.each(v, func(f reflect.StructField, key string, field reflect.Value) {
		if kindOf(field) != "section" {
			add(key, m.row(v.Type(), f, key, field))
		}
	})
	m.each(v, func(f reflect.StructField, key string, field reflect.Value) {
		if field.Kind() == reflect.Pointer {
			field = reflect.New(field.Type().Elem()).Elem()
		}
		if field.Kind() == reflect.Struct {
			sections = append(sections, section{title: key, about: m.meaning(v.Type(), f) + "\n\n"})
			m.rows("", field, func(inner, row string) { add(key+"."+inner, row) })
		}
	})
	var out strings.Builder
	out.WriteString("\n## First keys\n\nThe keys that most files need.\n\n" + header)
	for _, key := range m.first {
		assert.NotEmpty(m.t, rows[key], "there is no key %s", key)
		out.WriteString(rows[key])
	}
	out.WriteString("\n## Advanced keys\n\nAll others. Their defaults suit most.\n")
	for _, s := range sections {
		if s.rows != "" {
			fmt.Fprintf(&out, "\n### %s\n\n%s%s%s", s.title, s.about, header, s.rows)
		}
	}
	return out.String() + "\n"
}

const header = "| key | value | default | meaning |\n|---|---|---|---|\n"

// rows adds the keys of a section and of its subsections.
func (m *keys) rows(prefix string, section reflect.Value, add func(key, row string)) {
	m.each(section, func(f reflect.StructField, key string, field reflect.Value) {
		key = prefix + key
		add(key, m.row(section.Type(), f, key, field))
		if field.Kind() == reflect.Pointer {
			field = reflect.New(field.Type().Elem()).Elem()
			if d, ok := field.Addr().Interface().(interface{ SetDefaults() }); ok {
				d.SetDefaults()
			}
		}
		if places, ok := field.Interface().(intake.Places); ok {
			if strings.HasSuffix(key, "project") { // the keys of a place are listed once
				m.rows(key+".", reflect.ValueOf(places[0]), add)
			}
		} else if kindOf(field) == "section" {
			m.rows(key+".", field, add)
		}
	})
}

func (m *keys) row(section reflect.Type, f reflect.StructField, key string, v reflect.Value) string {
	text := strings.TrimPrefix(m.meaning(section, f), "`"+key[strings.LastIndex(key, ".")+1:]+"` ") // the key is in the row already
	for _, verb := range []string{"is ", "are "} {
		text = strings.TrimPrefix(text, verb)
	}
	text = strings.ToUpper(text[:1]) + strings.ReplaceAll(text[1:], "|", "\\|")
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", key, kindOf(v), m.value(v), text)
}

// meaning is the comment of a field, or that of the field before if the two share one, or else
// that of the field's type. Names of fields are replaced by keys.
func (m *keys) meaning(section reflect.Type, f reflect.StructField) string {
	text := m.comments.Of(section, f.Name)
	for i := f.Index[0] - 1; i >= 0 && text == ""; i-- {
		if before := m.comments.Of(section, section.Field(i).Name); word(f.Name).MatchString(before) {
			text = before
		}
	}
	if typ := f.Type; text == "" {
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		text = m.comments.Of(typ, "")
	}
	assert.NotEmpty(m.t, text, "%v.%s has no comment", section, f.Name)
	m.each(reflect.New(section).Elem(), func(other reflect.StructField, key string, v reflect.Value) {
		if kindOf(v) == "section" { // its name may be a common word: Prometheus
			text = regexp.MustCompile("^"+other.Name+`\b`).ReplaceAllString(text, "`"+key+"`")
			return
		}
		text = word(other.Name).ReplaceAllString(text, "`"+key+"`")
	})
	return text
}

func word(name string) *regexp.Regexp { return regexp.MustCompile(`\b` + name + `\b`) }

// each calls do for each field that a file can set.
func (m *keys) each(v reflect.Value, do func(f reflect.StructField, key string, field reflect.Value)) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if key, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); key != "" && key != "-" {
			do(f, key, v.Field(i))
		}
	}
}

func kindOf(v reflect.Value) string {
	switch v.Interface().(type) {
	case time.Duration:
		return "duration"
	case settings.Size:
		return "size"
	case intake.Place:
		return "place"
	case intake.Places:
		return "place, or list of places"
	}
	switch v.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "whole number"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		return "list"
	case reflect.String:
		return "text"
	}
	return "section"
}

// value formats a default as in a file.
func (m *keys) value(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Pointer:
		return "absent"
	case kindOf(v) == "section":
		return ""
	}
	if places, ok := v.Interface().(intake.Places); ok {
		v = reflect.ValueOf(places[0])
	}
	one := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "V", Type: v.Type(), Tag: `yaml:"v"`}})).Elem()
	one.Field(0).Set(v)
	value := strings.TrimSpace(strings.TrimPrefix(string(m.encode(one.Interface())), "v:"))
	if value == "''" {
		return ""
	}
	if kindOf(v) == "duration" {
		value = regexp.MustCompile("([hm])(0m)?0s$").ReplaceAllString(value, "$1")
	}
	return "`" + strings.Trim(value, "'") + "`"
}
