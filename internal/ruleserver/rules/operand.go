package rules

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// operand is a value that a filter compares with or an action writes: a static text, or
// the text of one of the item's fields.
type operand struct {
	Type string `json:"type"` // ofField or ofText
	Text scalar `json:"value"`
}

const ofField, ofText = "field", "static"

// UnmarshalJSONFrom reads {"type": "static" or "field", "value": …}, or a bare
// scalar as a shorter way to write a static value.
func (o *operand) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != jsontext.KindBeginObject {
		o.Type = ofText
		return json.UnmarshalDecode(dec, &o.Text)
	}
	type plain operand // has no methods
	if err := json.UnmarshalDecode(dec, (*plain)(o)); err != nil {
		return err
	}
	switch path := dec.StackPointer(); {
	case o.Type != ofField && o.Type != ofText:
		return malformed(path+"/type", `want "static" or "field", got %.40q`, o.Type)
	case o.Type == ofField && o.Text == "":
		return malformed(path+"/value", "want the name of a field")
	}
	return nil
}

// operands are the values of a condition or an action.
type operands []operand

// UnmarshalJSONFrom reads a list of values, or one value.
func (o *operands) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == jsontext.KindBeginArray {
		return json.UnmarshalDecode(dec, (*[]operand)(o))
	}
	*o = make(operands, 1)
	return json.UnmarshalDecode(dec, &(*o)[0])
}

// scalar is a string's text, or the literal text of a number or boolean: in a
// feed, 0.10 and 0.1 are different texts.
type scalar string

// UnmarshalJSONFrom reads a scalar.
func (s *scalar) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	switch kind := token.Kind(); kind {
	case jsontext.KindString, jsontext.KindNumber, jsontext.KindTrue, jsontext.KindFalse:
		*s = scalar(token.String())
		return nil
	default:
		return malformed(dec.StackPointer(), "want a string, number or boolean, got %s", kind)
	}
}

// fields returns the fields that the values read.
func (o operands) fields() (fields []string) {
	for _, one := range o {
		if one.Type == ofField {
			fields = append(fields, string(one.Text))
		}
	}
	return fields
}
