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
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/settings"
)

// Bounds on one cache listing.
const (
	maxCacheBytes = 64 << 20
	maxProjects   = 1_000_000
)

// listing is the cache listing of one upstream as it was read last.
type listing struct {
	shape  CacheListing
	cached *projectSet // nil is not known
	etag   string      // of the response that gave cached; "" is none
}

// noListing is the path of a listing that upstreams do not have.
const noListing = "none"

// update asks for the listing, if it has changed. An upstream that serves no
// listing answers 404; then nothing is known to be cached, which is no failure.
func (l *listing) update(ctx context.Context, c client, url string) error {
	err := c.get(ctx, request{url: url, accept: "application/json", etag: l.etag, max: maxCacheBytes}, func(resp response) error {
		cached, err := readListing(resp.body, l.shape, maxProjects, l.cached.Len())
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

// CacheListing says what a cache listing looks like, by JSON Pointers (RFC 6901) through
// objects.
type CacheListing struct {
	// Projects points to the array of the projects. Empty is the document itself.
	Projects string `yaml:"projects"`
	// ID points, within an element of that array, to the project's identifier, text or
	// a number. Empty is the element itself.
	ID string `yaml:"id"`
	// Bytes points, within an element, to the size of the project's data in bytes.
	// It may be missing. Empty is not told.
	Bytes string `yaml:"bytes"`
}

const maxPointer = 256 // bytes

func (s CacheListing) check(f *settings.Faults) {
	for _, p := range []struct{ key, pointer string }{{"projects", s.Projects}, {"id", s.ID}, {"bytes", s.Bytes}} {
		if len(p.pointer) > maxPointer || !jsontext.Pointer(p.pointer).IsValid() {
			f.Add(p.key, "%q is not a JSON Pointer such as /projects", p.pointer)
		}
	}
	if s.Bytes != "" && (s.ID+"/" == s.Bytes+"/" || strings.HasPrefix(s.Bytes, s.ID+"/") || strings.HasPrefix(s.ID, s.Bytes+"/")) {
		f.Add("bytes", "%q and reports.cache_listing.id, %q, cannot be within one another", s.Bytes, s.ID)
	}
}

// wanted is a member at the end of a pointer.
type wanted struct {
	names    []string
	read     func() error
	optional bool
}

func at(pointer string, read func() error, optional bool) wanted {
	return wanted{slices.Collect(jsontext.Pointer(pointer).Tokens()), read, optional}
}

// members are what an object must have for the pointers into it.
func (l *listingReader) members(all ...wanted) []member {
	var members []member
	for len(all) > 0 {
		first := all[0]
		m := member{name: first.names[0], read: first.read, optional: first.optional}
		var inner, others []wanted
		for _, w := range all {
			switch {
			case w.names[0] != m.name:
				others = append(others, w)
			case len(w.names) > 1:
				w.names = w.names[1:]
				inner = append(inner, w)
				m.optional = m.optional && w.optional
			}
		}
		if len(inner) > 0 {
			within := l.members(inner...)
			m.read = func() error { return l.object(within) }
		}
		members, all = append(members, m), others
	}
	return members
}

// upstreamURL returns the URL of a path, which may have a query, at an upstream.
func upstreamURL(address, path string) string {
	return (&url.URL{Scheme: "http", Host: address}).String() + path
}

// listingReader reads {"projects": [{"id": …, "bytes": …}, …]}, or what the shape
// says. The size is optional. It skips other members.
type listingReader struct {
	whole    func() error // reads the document
	one      func() error // reads a project
	name     string       // of the array, for errors
	dec      *jsontext.Decoder
	projects *projectSet
	max      int
	text     []byte // scratch for strings with escapes

	key   uint64  // of the project that is being read
	bytes float32 // of its data
}

// readListing reads a listing of at most max projects to its end. expected is a
// guess of their number: a good one saves the set from growing.
func readListing(body io.Reader, shape CacheListing, max, expected int) (*projectSet, error) {
	source := &tokenLimit{from: body}
	// Only the members wanted are checked for being there twice.
	source.dec = jsontext.NewDecoder(source, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	l := listingReader{dec: source.dec, projects: newProjectSet(min(expected, max)), max: max}
	l.follow(shape)
	err := l.document()
	switch {
	case source.exceeded != nil:
		return nil, source.exceeded
	case err != nil:
		return nil, err
	}
	return l.projects, nil
}

// follow prepares to read documents of a shape.
func (l *listingReader) follow(shape CacheListing) {
	l.whole, l.name = l.array, "the document"
	if shape.Projects != "" {
		l.name = jsontext.Pointer(shape.Projects).LastToken()
		members := l.members(at(shape.Projects, l.array, false))
		l.whole = func() error { return l.object(members) }
	}
	l.one = l.id
	if shape.ID != "" {
		wants := []wanted{at(shape.ID, l.id, false)}
		if shape.Bytes != "" {
			wants = append(wants, at(shape.Bytes, l.size, true))
		}
		members := l.members(wants...)
		l.one = func() error { return l.object(members) }
	}
}

func (l *listingReader) document() error {
	if err := l.whole(); err != nil {
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
		return fmt.Errorf("%s: %w", l.name, err)
	}
	for n := 0; l.dec.PeekKind() != ']'; n++ {
		if n == l.max {
			return fmt.Errorf("more than %d projects", l.max)
		}
		l.key, l.bytes = 0, 0
		if err := l.one(); err != nil {
			return fmt.Errorf("%s[%d]: %w", l.name, n, err)
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
func (l *listingReader) object(wanted []member) error {
	if err := l.open('{', "an object"); err != nil {
		return err
	}
	for i := range wanted {
		wanted[i].seen = false
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
