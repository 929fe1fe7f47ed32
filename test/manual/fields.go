package manual

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Fields generates the tables of all fields of JSON values and of the structs in them, from the comments. title names a
// type's table.
func Fields(t *testing.T, title func(reflect.Type) string, values ...any) string {
	t.Helper()
	m := &fields{t: t, comments: NewComments(t), title: title}
	for _, v := range values {
		m.table(reflect.TypeOf(v))
	}
	return m.out.String()
}

// fields writes the tables of fields, one for each type.
type fields struct {
	t        *testing.T
	out      strings.Builder
	done     []reflect.Type
	comments *Comments
	title    func(reflect.Type) string
}

// table writes the fields of a type, and then the types of the fields. The comment of a field
// also documents the fields after it that have no comment.
func (m *fields) table(typ reflect.Type) {
	if slices.Contains(m.done, typ) {
		return
	}
	m.done = append(m.done, typ)
	fmt.Fprintf(&m.out, "\n### %s\n\n", m.title(typ))
	var texts []string
	var others []reflect.Type
	for _, f := range reflect.VisibleFields(typ) {
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "" || f.Anonymous {
			continue
		}
		owner := typ
		for _, i := range f.Index[:len(f.Index)-1] {
			owner = owner.Field(i).Type
		}
		last, text := len(texts)-1, m.comments.Of(owner, f.Name)
		if text != "" || last < 0 {
			last, texts = last+1, append(texts, text)
		}
		name := "`" + key + "`"
		if strings.HasPrefix(options, "omit") {
			name += "?"
		}
		if other := inner(f.Type); other != nil {
			others = append(others, other)
			name = fmt.Sprintf("[%s](#%s)", name, m.title(other))
		}
		named := regexp.MustCompile(`(^|[ (])` + f.Name + `\b`)
		assert.Regexp(m.t, named, texts[last], "%v has no comment that names %s", owner, f.Name)
		texts[last] = named.ReplaceAllString(texts[last], "${1}"+name)
	}
	for _, text := range texts {
		fmt.Fprintf(&m.out, "- %s\n", text)
	}
	for _, o := range others {
		m.table(o)
	}
}

// inner is the struct in a type, if the struct has a table.
func inner(typ reflect.Type) reflect.Type {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() == reflect.Struct && typ.String() != "time.Time" {
		return typ
	}
	return nil
}
