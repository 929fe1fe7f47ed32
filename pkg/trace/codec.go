package trace

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"example.org/pilotfish/pkg/selection"
)

// encoding returns the options that turn a job into a line.
func encoding() json.Options {
	return json.WithMarshalers(json.MarshalToFunc(
		func(enc *jsontext.Encoder, p selection.Priority) error {
			return enc.WriteToken(jsontext.String(p.String()))
		}))
}

// decoding returns the options that turn a line into a job.
func decoding() json.Options {
	return json.JoinOptions(
		json.RejectUnknownMembers(true),
		json.WithUnmarshalers(json.UnmarshalFromFunc(readPriority)),
	)
}

func readPriority(dec *jsontext.Decoder, p *selection.Priority) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	var ok bool
	if token.Kind() == '"' {
		*p, ok = selection.ParsePriority(token.String())
	}
	if !ok {
		return fmt.Errorf("unknown priority %.40q: it is high or low", token.String())
	}
	return nil
}

// locate turns an error of the JSON library into the field it is about and
// what is wrong there, in words that do not change between its versions.
func locate(err error) (field string, reason error) {
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(e, jsontext.ErrDuplicateName) {
			return path(e.JSONPointer), errors.New("is there twice")
		}
		return path(e.JSONPointer), fmt.Errorf("not JSON at byte %d: %w", e.ByteOffset, e.Err)
	}
	e, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return "", err
	case errors.Is(e, json.ErrUnknownName):
		return path(e.JSONPointer), errors.New("unknown field")
	case e.GoType == nil || e.Err != nil && !errors.Is(e, strconv.ErrRange) && !errors.Is(e, strconv.ErrSyntax):
		return path(e.JSONPointer), e.Err
	case e.JSONValue != nil:
		return path(e.JSONPointer), fmt.Errorf("%.40s is not %s", e.JSONValue, wanted(e.GoType))
	case e.JSONKind == jsontext.KindBeginArray:
		return path(e.JSONPointer), fmt.Errorf("a JSON array is not %s", wanted(e.GoType))
	case e.JSONKind == jsontext.KindBeginObject:
		return path(e.JSONPointer), fmt.Errorf("a JSON object is not %s", wanted(e.GoType))
	}
	return path(e.JSONPointer), fmt.Errorf("a JSON %v is not %s", e.JSONKind, wanted(e.GoType))
}

// wanted names what a field of this type holds.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Float64:
		return "a number"
	case reflect.Int64:
		return "a whole number of 64 bits"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "an array"
	}
	return "an object"
}

// path is a pointer without its leading slash: timeouts/queue.
func path(p jsontext.Pointer) string { return strings.TrimPrefix(string(p), "/") }
