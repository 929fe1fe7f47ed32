package admin_test

import (
	"flag"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/logging"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/test/manual"
)

// docs/api.md lists every field of /api/*, generated from the types and their comments:
//
//	go test ./internal/admin -run TestReference -update

var update = flag.Bool("update", false, "write the reference of the API")

func TestReferenceOfTheAPI(t *testing.T) {
	m := &fieldManual{t: t, comments: manual.NewComments(t)}
	for _, v := range []any{admin.Now{}, admin.Pick{}, quality.Point{}, logging.Event{}, admin.About{}, admin.Reloaded{}} {
		m.table(reflect.TypeOf(v))
	}
	manual.Compare(t, "../../docs/api.md", m.out.String()+"\n", "go test ./internal/admin -run TestReference", *update)
}

// fieldManual writes the tables of fields, one for each type.
type fieldManual struct {
	t        *testing.T
	out      strings.Builder
	done     []reflect.Type
	comments *manual.Comments
}

// table writes the fields of a type, and then the types of the fields. The comment of a field
// also documents the fields after it that have no comment.
func (m *fieldManual) table(typ reflect.Type) {
	if slices.Contains(m.done, typ) {
		return
	}
	m.done = append(m.done, typ)
	fmt.Fprintf(&m.out, "\n### %s\n\n", title(typ))
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
			name = fmt.Sprintf("[%s](#%s)", name, title(other))
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

// title is the name of a type, with its package if several packages have a type of that name.
func title(typ reflect.Type) string {
	switch typ {
	case reflect.TypeFor[pool.Ranked]():
		return "ranked"
	case reflect.TypeFor[quality.Status]():
		return "fleet"
	}
	return strings.ToLower(typ.Name())
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
