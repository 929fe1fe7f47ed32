package report

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// sample is one element of the vector that answers a query.
type sample struct {
	Labels map[string]string `json:"metric"`
	Point  *point            `json:"value"`
}

// point is a value at an instant, in Unix seconds on the server's clock. It
// stands as [1763677245.123, "0.5"], since JSON has no infinity.
type point struct{ at, value float64 }

func (p *point) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var pair [2]jsontext.Value
	if err := json.UnmarshalDecode(dec, &pair); err != nil {
		return err
	}
	var text string
	if err := errors.Join(json.Unmarshal(pair[0], &p.at), json.Unmarshal(pair[1], &text)); err != nil {
		return err
	}
	var err error
	p.value, err = strconv.ParseFloat(text, 64)
	return err
}

// stream hands over the samples of a vector as they are read, so that none
// but the wanted need be kept.
type stream func(sample)

func (each stream) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '[' {
		return errors.New("the result is not an array")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		var s sample
		if err := json.UnmarshalDecode(dec, &s); err != nil {
			return err
		}
		if s.Point == nil {
			return errors.New("a sample has no value")
		}
		each(s)
	}
	_, err := dec.ReadToken()
	return err
}

// readVector reads the answer to an instant query to its end.
func readVector(body io.Reader, each func(sample)) error {
	source := &guard{from: body}
	source.dec = jsontext.NewDecoder(source)
	var a struct {
		Status string `json:"status"`
		Data   struct {
			Type   string `json:"resultType"`
			Result stream `json:"result"`
		} `json:"data"`
	}
	a.Data.Result = each
	err := json.UnmarshalDecode(source.dec, &a)
	if err == nil {
		err = ended(source.dec)
	}
	switch {
	case source.stuck != nil:
		return source.stuck
	case errors.Is(err, io.EOF):
		return errors.New("empty")
	case err != nil:
		return err
	case a.Status != "success" || a.Data.Type != "vector":
		return fmt.Errorf("status %q and a result of type %q, not \"success\" and \"vector\"", a.Status, a.Data.Type)
	}
	return nil
}
