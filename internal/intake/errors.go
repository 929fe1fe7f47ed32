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
	valid bool // the JSON is
}

func (e *bodyError) Error() string { return e.text }

// fault is the error of a job whose value at a JSON Pointer is wrong; "" is the whole job.
func fault(pointer string, offset int, wrong string) error {
	return &bodyError{fmt.Sprintf("%s at byte %d %s", cmp.Or(pointer, "the job"), offset, wrong), true}
}

// maxShown bounds what an error repeats of a JSON Pointer, in bytes.
const maxShown = 100

// invalid is the error of a body that is not valid JSON.
func invalid(offset int, pointer jsontext.Pointer, reason string) error {
	in := ""
	if pointer != "" {
		in = fmt.Sprintf(" in %q", settings.Cut(string(pointer), maxShown))
	}
	return &bodyError{text: fmt.Sprintf("invalid JSON at byte %d%s: %s", offset, in, reason)}
}

// headError is a member outside the body that no job can have.
type headError string

func (e headError) Error() string { return string(e) }

// findFault reads a body that is no valid object with jsontext, and returns its error: that says what is wrong.
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
		return invalid(body.space(int(dec.InputOffset())), "", "more follows after the job's object")
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
		return invalid(len(body), "", "there is nothing in it")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return invalid(len(body), "", "it ends within the job")
	case errors.As(err, &syntactic):
		return invalid(int(syntactic.ByteOffset), syntactic.JSONPointer, syntactic.Err.Error())
	}
	return err
}
