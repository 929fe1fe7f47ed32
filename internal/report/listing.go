package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/pilotfish/internal/intake"
)

// Bounds on one cache listing.
const (
	maxCacheBytes = 64 << 20
	maxProjects   = 1_000_000
)

// listing is the cache listing of one upstream as it was read last.
type listing struct {
	cached *projectSet // nil is not known
	etag   string      // of the response that gave cached; "" is none
}

// update asks for the listing, if it has changed. An upstream that serves no
// listing answers 404; then nothing is known to be cached, which is no failure.
func (l *listing) update(ctx context.Context, c client, url string) error {
	err := c.get(ctx, request{url: url, accept: "application/json", etag: l.etag, max: maxCacheBytes}, func(resp response) error {
		cached, err := readListing(resp.body, maxProjects, l.cached.Len())
		if err != nil {
			return err
		}
		l.cached, l.etag = cached, resp.header.Get("ETag")
		return nil
	})
	switch {
	case l.etag != "" && errors.Is(err, statusError(http.StatusNotModified)):
		return nil
	case errors.Is(err, statusError(http.StatusNotFound)):
		l.cached, l.etag = nil, ""
		return nil
	}
	return err
}

// upstreamURL returns the URL of a path, which may have a query, at an upstream.
func upstreamURL(address, path string) string {
	return (&url.URL{Scheme: "http", Host: address}).String() + path
}

// listingReader reads {"projects": [{"id": …}, …]}. It skips other members.
type listingReader struct {
	dec      *jsontext.Decoder
	projects *projectSet
	max      int
	text     []byte // scratch for strings with escapes
}

// readListing reads a listing of at most max projects to its end. expected is a
// guess of their number: a good one saves the set from growing.
func readListing(body io.Reader, max, expected int) (*projectSet, error) {
	source := &tokenLimit{from: body}
	// Only the members wanted are checked for being there twice.
	source.dec = jsontext.NewDecoder(source, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	l := listingReader{dec: source.dec, projects: newProjectSet(min(expected, max)), max: max}
	err := l.whole()
	switch {
	case source.exceeded != nil:
		return nil, source.exceeded
	case err != nil:
		return nil, err
	}
	return l.projects, nil
}

func (l *listingReader) whole() error {
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

// array reads the projects. Some encoders write null for none.
func (l *listingReader) array() error {
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
func (l *listingReader) object(wanted string, read func() error) error {
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

func (l *listingReader) open(kind jsontext.Kind, what string) error {
	token, err := l.dec.ReadToken()
	if err == nil && token.Kind() != kind {
		err = errors.New("not " + what)
	}
	return err
}

// id reads a project identifier by the rules for that of a job, so that the
// hashes agree. It leaves out identifiers that no job can have.
func (l *listingReader) id() error {
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
func (l *listingReader) unquote(quoted []byte) []byte {
	text := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text) {
		return text
	}
	l.text, _ = jsontext.AppendUnquote(l.text[:0], quoted)
	return l.text
}

// maxToken bounds one string or number of a JSON response, in bytes. Without it
// a response could take as much memory as it has bytes, because the decoder holds
// a token whole.
const maxToken = 64 << 10

// tokenLimit feeds a decoder until one token is longer than maxToken.
type tokenLimit struct {
	from     io.Reader
	dec      *jsontext.Decoder
	fed      int64 // bytes that dec got
	exceeded error // that, without the decoder's words around it
}

func (t *tokenLimit) Read(into []byte) (int, error) {
	if t.fed-t.dec.InputOffset() > maxToken {
		t.exceeded = fmt.Errorf("a value is longer than %d bytes", maxToken)
		return 0, t.exceeded
	}
	n, err := t.from.Read(into)
	t.fed += int64(n)
	return n, err
}
