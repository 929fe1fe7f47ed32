package report

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxToken is the maximum length of one string or number of a JSON response, in bytes.
// The decoder buffers a whole token, so without it a response could use memory of its
// whole size.
const maxToken = 64 << 10

// readDocument reads one JSON document to its end. Members that are not fields of into
// are skipped.
func readDocument(body io.Reader, into any) error {
	var dec *jsontext.Decoder
	fed := int64(0) // bytes that dec has read so far
	source := &guarded{from: body, check: func(read []byte) error {
		if fed-dec.InputOffset() > maxToken {
			return fmt.Errorf("a value is longer than %d bytes", maxToken)
		}
		fed += int64(len(read))
		return nil
	}}
	dec = jsontext.NewDecoder(source, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	err := json.UnmarshalDecode(dec, into)
	if err == nil {
		if _, err = dec.ReadToken(); errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = errors.New("unexpected data after the end")
		}
	}
	var misfit *json.SemanticError // its text names Go types, which mean nothing to operators
	switch {
	case source.broke != nil:
		return source.broke
	case errors.Is(err, io.EOF):
		return errors.New("empty")
	case errors.As(err, &misfit) && misfit.Err != nil:
		return fmt.Errorf("%s: %w", misfit.JSONPointer, misfit.Err)
	case errors.As(err, &misfit):
		return fmt.Errorf("%s: unexpected %v", misfit.JSONPointer, misfit.JSONKind)
	}
	return err
}

// elements is a JSON array that is not kept in memory: each is called for every element
// as it is read.
type elements[T any] struct {
	each  func(*T) error // must reset the element: it is reused for the next one
	found bool           // the document contains the array
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom. Null is an empty array, as some encoders write it.
func (e *elements[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	e.found = true
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '[':
	default:
		return errors.New("not an array")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	var x T
	for n := 0; dec.PeekKind() != ']'; n++ {
		if err := json.UnmarshalDecode(dec, &x); err != nil {
			return err
		}
		if err := e.each(&x); err != nil {
			return fmt.Errorf("element %d: %w", n, err)
		}
	}
	_, err := dec.ReadToken()
	return err
}
