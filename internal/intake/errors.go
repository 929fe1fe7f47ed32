package intake

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/pilotfish/internal/settings"
)

// bodyError is a body that is not valid JSON, or valid JSON that is not a valid job.
type bodyError struct {
	text  string
	valid bool // it is valid JSON
}

func (e *bodyError) Error() string { return e.text }

// fault returns the error of a job whose value at a JSON Pointer is invalid; the pointer "" is the whole job.
func fault(pointer string, offset int, wrong string) error {
	return &bodyError{fmt.Sprintf("%s at byte %d %s", cmp.Or(pointer, "the job"), offset, wrong), true}
}

// maxShown is the maximum number of bytes of a JSON Pointer that an error quotes.
const maxShown = 100

// invalid returns the error of a body that is not valid JSON.
func invalid(offset int, pointer jsontext.Pointer, reason string) error {
	in := ""
	if pointer != "" {
		in = fmt.Sprintf(" in %q", settings.Cut(string(pointer), maxShown))
	}
	return &bodyError{text: fmt.Sprintf("invalid JSON at byte %d%s: %s", offset, in, reason)}
}

// headError is an invalid member in a header or in the path.
type headError string

func (e headError) Error() string { return string(e) }

// findFault decodes an invalid body again with jsontext, which is slower but returns a precise error.
func findFault(body jsonText) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	kind := dec.PeekKind()
	_, err := dec.ReadToken()
	if err == nil && kind != '{' {
		return fault("", body.space(0), "must be an object, not "+kindName(kind))
	}
	for err == nil && dec.PeekKind() == '"' {
		if _, err = dec.ReadValue(); err == nil { // the name
			_, err = dec.ReadValue()
		}
	}
	if err == nil {
		_, err = dec.ReadToken() // the end of the object
	}
	if err == nil && dec.PeekKind() != jsontext.KindInvalid {
		return invalid(body.space(int(dec.InputOffset())), "", "unexpected data after the job's object")
	}
	if err == nil {
		_, err = dec.ReadToken()
	}
	return err
}

// explain turns an error of the decoder into one of this package.
func explain(body []byte, err error) error {
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF):
		return invalid(len(body), "", "the body is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return invalid(len(body), "", "the body ends within the job")
	case errors.As(err, &syntactic):
		return invalid(int(syntactic.ByteOffset), syntactic.JSONPointer, syntactic.Err.Error())
	}
	return err
}
