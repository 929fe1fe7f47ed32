package rules

import "github.com/go-json-experiment/json/jsontext"

// Value is what a filter compares with or an action writes: a static text, or
// the text that the item has in a field.
type Value struct {
	Field  string // when not empty, the value is this field's
	Static string
}

type wireValue struct {
	Type  string         `json:"type"`
	Value jsontext.Value `json:"value"`
}

// parseValue reads {"type": "static" or "field", "value": …}, or a bare scalar
// as a shorter way to write a static value.
func parseValue(path jsontext.Pointer, raw jsontext.Value) (Value, error) {
	if raw.Kind() != jsontext.KindBeginObject {
		text, err := parseScalar(path, raw)
		return Value{Static: text}, err
	}
	var wire wireValue
	if err := decodeAt(path, raw, &wire); err != nil {
		return Value{}, err
	}
	text, err := parseScalar(path+"/value", wire.Value)
	if err != nil {
		return Value{}, err
	}
	switch wire.Type {
	case "static":
		return Value{Static: text}, nil
	case "field":
		if text == "" || wire.Value.Kind() != jsontext.KindString {
			return Value{}, malformed(path+"/value", "want the name of a field")
		}
		return Value{Field: text}, nil
	}
	return Value{}, malformed(path+"/type", `want "static" or "field", got %.40q`, wire.Type)
}

// parseScalar gives a string's text, and a number or boolean as it was written.
func parseScalar(path jsontext.Pointer, raw jsontext.Value) (string, error) {
	switch kind := raw.Kind(); kind {
	case jsontext.KindString:
		text, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return "", malformed(path, "not a valid string")
		}
		return string(text), nil
	case jsontext.KindNumber, jsontext.KindTrue, jsontext.KindFalse:
		return string(raw), nil
	case jsontext.KindInvalid:
		return "", malformed(path, "missing")
	default:
		return "", malformed(path, "want a string, number or boolean, got %s", kindName(kind))
	}
}

// parseValues reads a list of values.
func parseValues(path jsontext.Pointer, raw jsontext.Value) ([]Value, error) {
	if raw.Kind() != jsontext.KindBeginArray {
		return nil, malformed(path, "want an array of values, got %s", kindName(raw.Kind()))
	}
	var list []jsontext.Value
	if err := decodeAt(path, raw, &list); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, malformed(path, "want at least one value")
	}
	values := make([]Value, len(list))
	for i, one := range list {
		v, err := parseValue(at(path, i), one)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}
