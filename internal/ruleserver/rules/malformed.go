package rules

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Malformed says what is wrong with a request and where.
type Malformed struct {
	Path   jsontext.Pointer // "" is the request as a whole
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

// decode reads JSON text into a wire struct. The library's errors name Go types;
// decode turns them into errors that name members of the request.
func decode(body []byte, into any) error { return decodeAt("", body, into) }

// decodeAt reads a part of the request that is found at path.
func decodeAt(path jsontext.Pointer, body []byte, into any) error {
	err := json.Unmarshal(body, into, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(e.Err, jsontext.ErrDuplicateName) {
			return malformed(path+e.JSONPointer, "given twice")
		}
		return malformed(path+e.JSONPointer, "not JSON at byte %d: %v", e.ByteOffset, e.Err)
	}
	e, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return malformed(path, "%v", err)
	case errors.Is(e.Err, json.ErrUnknownName):
		return malformed(path+e.JSONPointer, "unknown member")
	case e.GoType != nil && e.JSONKind != 0:
		return malformed(path+e.JSONPointer, "want %s, got %s", typeName(e.GoType), kindName(e.JSONKind))
	}
	return malformed(path+e.JSONPointer, "%v", e.Err)
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.Slice:
		return "an array"
	case reflect.Struct:
		return "an object"
	case reflect.Float64:
		return "a number"
	default:
		return "a " + t.Kind().String()
	}
}

func kindName(k jsontext.Kind) string {
	switch k {
	case jsontext.KindNull:
		return "null"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "a boolean"
	case jsontext.KindNumber:
		return "a number"
	case jsontext.KindString:
		return "a string"
	case jsontext.KindBeginArray:
		return "an array"
	case jsontext.KindBeginObject:
		return "an object"
	default:
		return "nothing"
	}
}
