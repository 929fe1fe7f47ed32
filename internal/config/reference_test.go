package config

import (
	"flag"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/manual"
	"example.org/pilotfish/internal/settings"
)

// The reference of all keys is made from the settings' types, their comments and
// their defaults:
//
//	go test ./internal/config -run TestReference -update

const reference = "../../docs/configuration.md"

var update = flag.Bool("update", false, "write the reference of all keys")

func TestReferenceIsComplete(t *testing.T) {
	manual.Hold(t, reference, newKeyManual(t).text(), "go test ./internal/config -run TestReference", *update)
}

// keyManual writes the reference.
type keyManual struct {
	t        *testing.T
	comments *manual.Comments
}

func newKeyManual(t *testing.T) *keyManual {
	return &keyManual{t: t, comments: manual.NewComments(t)}
}

func (m *keyManual) text() string {
	c := Default()
	v := reflect.ValueOf(&c).Elem()
	var out strings.Builder
	out.WriteString("\n## Ports and hosts\n\n" + header)
	m.each(v, func(f reflect.StructField, key string, field reflect.Value) {
		if kindOf(field) != "section" {
			m.row(&out, v.Type(), f, key, field)
		}
	})
	m.each(v, func(f reflect.StructField, key string, field reflect.Value) {
		if field.Kind() == reflect.Pointer {
			field = reflect.New(field.Type().Elem()).Elem()
		}
		if field.Kind() == reflect.Struct {
			fmt.Fprintf(&out, "\n## %s\n\n%s\n\n%s", key, m.meaning(v.Type(), f), header)
			m.rows(&out, "", field)
		}
	})
	return out.String() + "\n"
}

const header = "| key | value | default | meaning |\n|---|---|---|---|\n"

// rows writes the keys of a section, and those of the sections in it.
func (m *keyManual) rows(out *strings.Builder, prefix string, section reflect.Value) {
	m.each(section, func(f reflect.StructField, key string, field reflect.Value) {
		m.row(out, section.Type(), f, prefix+key, field)
		if field.Kind() == reflect.Pointer {
			field = reflect.New(field.Type().Elem()).Elem()
			if d, ok := field.Addr().Interface().(interface{ SetDefaults() }); ok {
				d.SetDefaults()
			}
		}
		if places, ok := field.Interface().(intake.Places); ok { // each place has the same keys
			field = reflect.ValueOf(places[0])
			m.rows(out, prefix+key+".", field)
		} else if kindOf(field) == "section" {
			m.rows(out, prefix+key+".", field)
		}
	})
}

func (m *keyManual) row(out *strings.Builder, section reflect.Type, f reflect.StructField, key string, v reflect.Value) {
	fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", key, kindOf(v), m.value(v), strings.ReplaceAll(m.meaning(section, f), "|", "\\|"))
}

// meaning is the comment of a field: its own, that of the field before if the two
// share one, or else that of its type. Names of fields become keys.
func (m *keyManual) meaning(section reflect.Type, f reflect.StructField) string {
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
func (m *keyManual) each(v reflect.Value, do func(f reflect.StructField, key string, field reflect.Value)) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if key := f.Tag.Get("yaml"); key != "" {
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

// value is a default as a file would have it.
func (m *keyManual) value(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Pointer:
		return "absent"
	case kindOf(v) == "section":
		return ""
	}
	one := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "V", Type: v.Type(), Tag: `yaml:"v"`}})).Elem()
	one.Field(0).Set(v)
	text, err := cli.Encode(one.Interface())
	require.NoError(m.t, err)
	value := strings.TrimSpace(strings.TrimPrefix(string(text), "v:"))
	if value == "''" {
		return ""
	}
	return "`" + strings.Trim(value, "'") + "`"
}
