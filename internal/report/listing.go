package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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

// listingReader reads {"projects": [{"id": …, "bytes": …}, …]}. The size is
// optional. It skips other members.
type listingReader struct {
	dec      *jsontext.Decoder
	projects *projectSet
	max      int
	text     []byte // scratch for strings with escapes

	key   uint64  // of the project that is being read
	bytes float32 // of its data
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
	if err := l.object(member{name: "projects", read: l.array}); err != nil {
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
		l.key, l.bytes = 0, 0
		if err := l.object(member{name: "id", read: l.id}, member{name: "bytes", read: l.size, optional: true}); err != nil {
			return fmt.Errorf("projects[%d]: %w", n, err)
		}
		l.projects.add(l.key, l.bytes)
	}
	_, err := l.dec.ReadToken()
	return err
}

// member is what is wanted of an object.
type member struct {
	name     string
	read     func() error
	optional bool
	seen     bool
}

// object reads an object and the wanted members of it; each of them may be
// there only once.
func (l *listingReader) object(wanted ...member) error {
	if err := l.open('{', "an object"); err != nil {
		return err
	}
	for l.dec.PeekKind() == '"' {
		name, err := l.dec.ReadValue()
		if err != nil {
			return err
		}
		at := slices.IndexFunc(wanted, func(m member) bool { return string(l.unquote(name)) == m.name })
		switch {
		case at < 0:
			err = l.dec.SkipValue()
		case wanted[at].seen:
			err = fmt.Errorf("%q is there twice", wanted[at].name)
		default:
			wanted[at].seen = true
			err = wanted[at].read()
		}
		if err != nil {
			return err
		}
	}
	if _, err := l.dec.ReadToken(); err != nil {
		return err
	}
	for _, m := range wanted {
		if !m.seen && !m.optional {
			return fmt.Errorf("%q is missing", m.name)
		}
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
		l.key = intake.Key(string(text))
	}
	return nil
}

// size reads the size of a project's data. What is no size counts as not told.
func (l *listingReader) size() error {
	text, err := l.dec.ReadValue()
	if err != nil {
		return err
	}
	if bytes, err := strconv.ParseFloat(string(text), 32); err == nil && bytes > 0 {
		l.bytes = float32(bytes)
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
