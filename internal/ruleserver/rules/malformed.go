package rules

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Malformed is an error in a request and its position.
type Malformed struct {
	Path   jsontext.Pointer // "" is the whole request
	reason string
}

func (m *Malformed) Error() string {
	if m.Path == "" {
		return m.reason
	}
	return fmt.Sprintf("%s: %s", m.Path, m.reason)
}

func malformed(path jsontext.Pointer, format string, args ...any) error {
	return &Malformed{Path: path, reason: fmt.Sprintf(format, args...)}
}

// decode reads JSON. The library's errors name Go types; decode converts them to
// errors that name members of the request.
func decode(body []byte, into any) error {
	err := json.Unmarshal(body, into, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Malformed](err); ok {
		return e
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(e.Err, jsontext.ErrDuplicateName) {
			return malformed(e.JSONPointer, "given twice")
		}
		return malformed(e.JSONPointer, "not JSON at byte %d: %v", e.ByteOffset, e.Err)
	}
	e, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return malformed("", "%v", err)
	case errors.Is(e.Err, json.ErrUnknownName):
		return malformed(e.JSONPointer, "unknown member")
	case e.GoType != nil && e.JSONKind != 0:
		return malformed(e.JSONPointer, "want %s, got %s", typeName(e.GoType.Kind()), e.JSONKind)
	}
	return malformed(e.JSONPointer, "%v", e.Err)
}

func typeName(k reflect.Kind) string {
	switch k {
	case reflect.Slice:
		return "an array"
	case reflect.Struct:
		return "an object"
	case reflect.Float64:
		return "a number"
	}
	return "a " + k.String()
}
