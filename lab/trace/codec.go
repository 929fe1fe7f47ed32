package trace

import (
	"errors"
	"fmt"
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

// locate turns an error of the JSON library into the field it is about and what is
// wrong there, without the names of Go types.
func locate(err error) (field string, reason error) {
	at := func(p jsontext.Pointer) string { return strings.TrimPrefix(string(p), "/") }
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return at(e.JSONPointer), fmt.Errorf("not JSON at byte %d: %w", e.ByteOffset, e.Err)
	}
	e, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return "", err
	case errors.Is(e, json.ErrUnknownName):
		return at(e.JSONPointer), errors.New("unknown field")
	case e.JSONValue != nil && e.Err != nil:
		return at(e.JSONPointer), fmt.Errorf("%.40s: %w", e.JSONValue, e.Err)
	case e.Err != nil:
		return at(e.JSONPointer), e.Err
	}
	kind := strings.NewReplacer("{", "object", "[", "array").Replace(e.JSONKind.String())
	return at(e.JSONPointer), fmt.Errorf("a JSON %s makes no sense here", kind)
}
