package rules

import "github.com/go-json-experiment/json/jsontext"

// operand is what a filter compares with or an action writes: a static text, or
// the text that the item has in a field.
type operand struct {
	field  string // when it is not empty, the text is this field's
	static string
}

type wireOperand struct {
	Type  string         `json:"type"`
	Value jsontext.Value `json:"value"`
}

// parseOperand reads {"type": "static" or "field", "value": …}, or a bare scalar
// as a shorter way to write a static value.
func parseOperand(path jsontext.Pointer, raw jsontext.Value) (operand, error) {
	if raw.Kind() != jsontext.KindBeginObject {
		text, err := parseScalar(path, raw)
		return operand{static: text}, err
	}
	var wire wireOperand
	if err := decodeAt(path, raw, &wire); err != nil {
		return operand{}, err
	}
	text, err := parseScalar(path+"/value", wire.Value)
	if err != nil {
		return operand{}, err
	}
	switch wire.Type {
	case "static":
		return operand{static: text}, nil
	case "field":
		if text == "" || wire.Value.Kind() != jsontext.KindString {
			return operand{}, malformed(path+"/value", "want the name of a field")
		}
		return operand{field: text}, nil
	}
	return operand{}, malformed(path+"/type", `want "static" or "field", got %.40q`, wire.Type)
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

// parseOperands reads a list of values.
func parseOperands(path jsontext.Pointer, raw jsontext.Value) ([]operand, error) {
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
	values := make([]operand, len(list))
	for i, one := range list {
		v, err := parseOperand(at(path, i), one)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}
