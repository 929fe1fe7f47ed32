package admin_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/capacity"
	"example.org/pilotfish/internal/manual"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
)

// docs/api.md lists every field of /api/*, made from the types and their comments:
//
//	go test ./internal/admin -run TestReference -update

const apiReference = "../../docs/api.md"

var update = flag.Bool("update", false, "write the reference of the API")

func TestReferenceOfTheAPI(t *testing.T) {
	manual.Hold(t, apiReference, newFieldManual(t).text(), "go test ./internal/admin -run TestReference", *update)
}

func TestEveryPathIsInTheReference(t *testing.T) {
	text, err := os.ReadFile(apiReference)
	require.NoError(t, err)
	sources, err := filepath.Glob("*.go")
	require.NoError(t, err)
	paths := 0
	for _, source := range sources {
		code, err := os.ReadFile(source)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`mux\.Handle(?:Func)?\("[A-Z]+ (/[a-z/-]+)`).FindAllStringSubmatch(string(code), -1) {
			if !strings.HasPrefix(m[1], "/debug/") {
				paths++
				assert.Regexp(t, "[` ]"+regexp.QuoteMeta(m[1]), string(text), "%s serves %s", source, m[1])
			}
		}
	}
	assert.Greater(t, paths, 10)
}

// fieldManual writes the tables of fields, one for each type.
type fieldManual struct {
	t        *testing.T
	out      strings.Builder
	done     map[reflect.Type]bool
	comments *manual.Comments
}

func newFieldManual(t *testing.T) *fieldManual {
	return &fieldManual{t: t, done: map[reflect.Type]bool{}, comments: manual.NewComments(t)}
}

func (m *fieldManual) text() string {
	for _, v := range []any{
		pool.State{}, pool.Ranked{}, quality.Summary{}, capacity.Advice{}, admin.Now{}, quality.Series{}, admin.About{},
	} {
		m.table(reflect.TypeOf(v))
	}
	return m.out.String() + "\n"
}

// table writes a type's fields, and then the types that they lead to.
func (m *fieldManual) table(typ reflect.Type) {
	if m.done[typ] {
		return
	}
	m.done[typ] = true
	fmt.Fprintf(&m.out, "\n### %s\n\n%s\n\n| field | value | meaning |\n|---|---|---|\n", title(typ), m.comment(typ, "", typ.Name(), title(typ)))
	var others []reflect.Type
	for _, f := range reflect.VisibleFields(typ) {
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		row := typ == reflect.TypeFor[admin.Upstream]() // most of it is told already
		if row && f.Type == reflect.TypeFor[pool.State]() {
			fmt.Fprintf(&m.out, "| | | all fields of an [upstream](#upstream) |\n")
		}
		if key == "" || f.Anonymous || row && len(f.Index) > 1 {
			continue
		}
		value, other := kind(f.Type)
		if other != nil {
			others = append(others, other)
		}
		if strings.HasPrefix(options, "omit") {
			value += ", or absent"
		}
		fmt.Fprintf(&m.out, "| `%s` | %s | %s |\n", key, value, m.meaning(typ, f))
	}
	for _, o := range others {
		m.table(o)
	}
}

// title is what a type is called where several packages have one of its name.
func title(typ reflect.Type) string {
	switch typ.String() {
	case "pool.State":
		return "upstream"
	case "admin.Upstream":
		return "row"
	case "breaker.Status":
		return "breaker"
	}
	return strings.ToLower(typ.Name())
}

// kind is a value as JSON has it, and the type that a table of its own shows.
func kind(typ reflect.Type) (word string, other reflect.Type) {
	if typ == reflect.TypeFor[time.Time]() {
		return "time, RFC 3339", nil
	}
	if typ.Implements(reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()) {
		return "text", nil
	}
	switch typ.Kind() {
	case reflect.Pointer:
		return kind(typ.Elem())
	case reflect.Slice:
		word, other = kind(typ.Elem())
		return "list of " + word, other
	case reflect.Map:
		word, other = kind(typ.Elem())
		return word + " by name", other
	case reflect.Struct:
		return fmt.Sprintf("[%s](#%[1]s)", title(typ)), typ
	case reflect.Bool:
		return "true or false", nil
	case reflect.String:
		return "text", nil
	}
	return "number", nil
}

// meaning is the comment of a field: its own, that of a field before if that
// names it, or else that of its type.
func (m *fieldManual) meaning(typ reflect.Type, f reflect.StructField) string {
	owner := typ
	for _, i := range f.Index[:len(f.Index)-1] {
		owner = owner.Field(i).Type
	}
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	text := m.comment(owner, f.Name, f.Name, "`"+key+"`")
	for i := f.Index[len(f.Index)-1] - 1; i >= 0 && text == ""; i-- {
		before := m.comment(owner, owner.Field(i).Name, f.Name, "`"+key+"`")
		if strings.Contains(before, "`"+key+"`") {
			text = before
		}
	}
	if _, other := kind(f.Type); text == "" && other != nil {
		text = m.comment(other, "", other.Name(), "`"+key+"`")
	}
	assert.NotEmpty(m.t, text, "%v.%s has no comment", owner, f.Name)
	for i := range owner.NumField() {
		other := owner.Field(i)
		if otherKey, _, _ := strings.Cut(other.Tag.Get("json"), ","); otherKey != "" {
			text = regexp.MustCompile(`(^|[ (])`+other.Name+`\b`).ReplaceAllString(text, "$1`"+otherKey+"`")
		}
	}
	return strings.ReplaceAll(text, "|", "\\|")
}

// comment is that of a type's field, or of the type itself, in one line, with one
// name in the place of another.
func (m *fieldManual) comment(typ reflect.Type, field, name, instead string) string {
	return regexp.MustCompile(`(^|[ (])`+name+`\b`).ReplaceAllString(m.comments.Of(typ, field), "${1}"+instead)
}
