package trace

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxProject bounds a project identifier, in bytes of its text.
const MaxProject = 256

// Project is the text of a project's identifier. As in a job, the integer
// 12345 and the string "12345" are the same project; in a file, text that is an
// integer is written as one.
type Project string

// MarshalJSONTo writes an integer or a string.
func (p Project) MarshalJSONTo(enc *jsontext.Encoder) error {
	if p.integer() {
		return enc.WriteValue(jsontext.Value(p))
	}
	return enc.WriteToken(jsontext.String(string(p)))
}

// UnmarshalJSONFrom reads an integer, a string, or null for no project.
func (p *Project) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	switch token.Kind() {
	case 'n':
		*p = ""
		return nil
	case '"', '0':
	default:
		return errors.New("a project is an integer or a string")
	}
	text := Project(token.String())
	if token.Kind() == '0' && !text.integer() {
		return fmt.Errorf("%.40s is not an integer: a project is an integer or a string", text)
	}
	if len(text) > MaxProject {
		return fmt.Errorf("a project of %d bytes is longer than %d", len(text), MaxProject)
	}
	*p = text
	return nil
}

// integer reports whether p is the text of an integer as JSON writes it.
func (p Project) integer() bool {
	digits := string(p)
	if len(digits) > 1 && digits[0] == '-' {
		digits = digits[1:]
	}
	if digits == "" || len(digits) > 1 && digits[0] == '0' {
		return false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return p != "-0"
}

// Line is the number of a line, counted from 1; 0 is none and is null in a file.
type Line int64

// MarshalJSONTo writes a number or null.
func (l Line) MarshalJSONTo(enc *jsontext.Encoder) error {
	if l == 0 {
		return enc.WriteToken(jsontext.Null)
	}
	return enc.WriteToken(jsontext.Int(int64(l)))
}

// UnmarshalJSONFrom reads a number or null.
func (l *Line) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if value.Kind() == 'n' {
		*l = 0
		return nil
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < 1 {
		return fmt.Errorf("%.40s is not the number of a line, counted from 1", value)
	}
	*l = Line(n)
	return nil
}

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
