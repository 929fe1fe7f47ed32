package intake

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Position is a place in a body.
type Position struct {
	Offset       int // in bytes, from 0
	Line, Column int // from 1; a column is a byte
}

func (p Position) String() string {
	return fmt.Sprintf("line %d, column %d (byte %d)", p.Line, p.Column, p.Offset)
}

func positionAt(body []byte, offset int) Position {
	before := body[:min(offset, len(body))]
	return Position{
		Offset: offset,
		Line:   1 + bytes.Count(before, []byte{'\n'}),
		Column: len(before) - bytes.LastIndexByte(before, '\n'),
	}
}

// SyntaxError is a body that is not valid JSON.
type SyntaxError struct {
	Position
	// Pointer is the JSON Pointer of the value that is broken, cut short when
	// it is long; "" is the whole body.
	Pointer string
	Reason  string
}

func (e *SyntaxError) Error() string {
	if e.Pointer == "" {
		return fmt.Sprintf("invalid JSON at %v: %s", e.Position, e.Reason)
	}
	return fmt.Sprintf("invalid JSON at %v in %q: %s", e.Position, e.Pointer, e.Reason)
}

// FieldError is valid JSON that is not a valid job.
type FieldError struct {
	Position
	// Pointer is the JSON Pointer of the offending member; "" is the whole body.
	Pointer string
	Reason  string
}

func (e *FieldError) Error() string {
	if e.Pointer == "" {
		return fmt.Sprintf("the job at %v %s", e.Position, e.Reason)
	}
	return fmt.Sprintf("%s at %v %s", e.Pointer, e.Position, e.Reason)
}

// explain turns an error of the decoder into one of this package.
func explain(body []byte, err error) error {
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF):
		return &SyntaxError{Position: positionAt(body, len(body)), Reason: "there is nothing in it"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &SyntaxError{Position: positionAt(body, len(body)), Reason: "it ends amid the job"}
	case errors.As(err, &syntactic):
		return &SyntaxError{
			Position: positionAt(body, int(syntactic.ByteOffset)),
			Pointer:  cut(string(syntactic.JSONPointer)),
			Reason:   syntactic.Err.Error(),
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
