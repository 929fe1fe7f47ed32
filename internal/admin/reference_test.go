package admin_test

import (
	"flag"
	"reflect"
	"strings"
	"testing"

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
	text := manual.Fields(t, title, admin.Now{}, admin.Pick{}, quality.Point{}, logging.Event{}, admin.About{}, admin.Reloaded{})
	manual.Compare(t, "../../docs/api.md", text+"\n", "go test ./internal/admin -run TestReference", *update)
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
