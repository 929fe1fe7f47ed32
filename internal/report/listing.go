package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/pilotfish/internal/intake"
)

// listing is a cache listing being read: {"projects": [{"id": …}, …]}. Other
// members are skipped.
type listing struct {
	dec      *jsontext.Decoder
	projects *Projects
	max      int
	text     []byte // scratch for strings with escapes
}

// readListing reads a listing of at most max projects to its end. To expect
// their number, where it is right, saves growing.
func readListing(body io.Reader, max, expected int) (*Projects, error) {
	source := &guard{from: body}
	// Only the members wanted are checked for being there twice.
	source.dec = jsontext.NewDecoder(source, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	l := listing{dec: source.dec, projects: newProjects(min(expected, max)), max: max}
	err := l.whole()
	switch {
	case source.stuck != nil:
		return nil, source.stuck
	case err != nil:
		return nil, err
	}
	return l.projects, nil
}

func (l *listing) whole() error {
	if err := l.object("projects", l.array); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("empty")
		}
		return err
	}
	return ended(l.dec)
}

// ended says what is wrong when something follows after the one value read.
func ended(dec *jsontext.Decoder) error {
	_, err := dec.ReadToken()
	switch {
	case err == nil:
		return errors.New("more follows after its end")
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}

// array reads the projects. null is what some encoders make of none.
func (l *listing) array() error {
	if l.dec.PeekKind() == 'n' {
		return l.dec.SkipValue()
	}
	if err := l.open('[', "an array"); err != nil {
		return fmt.Errorf("projects: %w", err)
	}
	for n := 0; l.dec.PeekKind() != ']'; n++ {
		if n == l.max {
			return fmt.Errorf("more than %d projects", l.max)
		}
		if err := l.object("id", l.id); err != nil {
			return fmt.Errorf("projects[%d]: %w", n, err)
		}
	}
	_, err := l.dec.ReadToken()
	return err
}

// object reads an object and one member of it, which must be there once.
func (l *listing) object(wanted string, read func() error) error {
	if err := l.open('{', "an object"); err != nil {
		return err
	}
	seen := false
	for l.dec.PeekKind() == '"' {
		name, err := l.dec.ReadValue()
		if err != nil {
			return err
		}
		switch {
		case string(l.unquote(name)) != wanted:
			err = l.dec.SkipValue()
		case seen:
			err = fmt.Errorf("%q is there twice", wanted)
		default:
			seen = true
			err = read()
		}
		if err != nil {
			return err
		}
	}
	if _, err := l.dec.ReadToken(); err != nil {
		return err
	}
	if !seen {
		return fmt.Errorf("%q is missing", wanted)
	}
	return nil
}

func (l *listing) open(kind jsontext.Kind, what string) error {
	token, err := l.dec.ReadToken()
	if err == nil && token.Kind() != kind {
		err = errors.New("not " + what)
	}
	return err
}

// id reads a project identifier, by the same rules as those of a job, so that the hashes
// agree. One that no job can have is left out.
func (l *listing) id() error {
	kind := l.dec.PeekKind()
	text, err := l.dec.ReadValue()
	if err != nil {
		return err
	}
	switch {
	case kind == '"':
		text = l.unquote(text)
	case kind != '0' || bytes.ContainsAny(text, ".eE"):
		return errors.New("the id is neither an integer nor a string")
	case string(text) == "-0":
		text = text[1:]
	}
	if len(text) <= intake.MaxProject {
		l.projects.add(intake.Key(string(text)))
	}
	return nil
}

// unquote returns the text of a string that the decoder let through, valid
// until the next call. Invalid UTF-8 becomes U+FFFD.
func (l *listing) unquote(quoted []byte) []byte {
	text := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text) {
		return text
	}
	l.text, _ = jsontext.AppendUnquote(l.text[:0], quoted)
	return l.text
}
