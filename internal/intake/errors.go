package intake

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// bodyError is a body that is not valid JSON, or valid JSON that is not a valid job.
type bodyError struct {
	offset int // in the body, in bytes from 0
	// Pointer is the JSON Pointer of the value at fault, cut short when it is long; "" is the
	// whole body.
	Pointer string
	Reason  string
	valid   bool // the JSON is
}

func (e *bodyError) Error() string {
	switch {
	case e.valid && e.Pointer == "":
		return fmt.Sprintf("the job at byte %d %s", e.offset, e.Reason)
	case e.valid:
		return fmt.Sprintf("%s at byte %d %s", e.Pointer, e.offset, e.Reason)
	case e.Pointer == "":
		return fmt.Sprintf("invalid JSON at byte %d: %s", e.offset, e.Reason)
	}
	return fmt.Sprintf("invalid JSON at byte %d in %q: %s", e.offset, e.Pointer, e.Reason)
}

// headError is a member outside the body that no job can have.
type headError struct {
	place  string // header X-Priority
	reason string
}

func (e *headError) Error() string { return e.place + " " + e.reason }

// explain turns an error of the decoder into one of this package.
func explain(body []byte, err error) error {
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF):
		return &bodyError{offset: len(body), Reason: "there is nothing in it"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &bodyError{offset: len(body), Reason: "it ends within the job"}
	case errors.As(err, &syntactic):
		return &bodyError{
			offset:  int(syntactic.ByteOffset),
			Pointer: cut(string(syntactic.JSONPointer)),
			Reason:  syntactic.Err.Error(),
		}
	}
	return err
}

// cut bounds what an error repeats of a body.
func cut(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
