package trace

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Kind is what a job asks of an upstream.
type Kind uint8

const (
	// Process runs a project's rules: all four joblets.
	Process Kind = iota
	// Prefetch only loads a project's data into the cache (the thesis, 3.2).
	Prefetch
)

// String returns the word in a trace.
func (k Kind) String() string {
	if k == Prefetch {
		return "prefetch"
	}
	return "process"
}

// MarshalJSONTo writes the word.
func (k Kind) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteToken(jsontext.String(k.String()))
}

// UnmarshalJSONFrom reads the word.
func (k *Kind) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	text := token.String()
	switch {
	case token.Kind() == '"' && text == "process":
		*k = Process
	case token.Kind() == '"' && text == "prefetch":
		*k = Prefetch
	default:
		return fmt.Errorf("unknown kind %.40q: it is process or prefetch", text)
	}
	return nil
}
