package intake

import (
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/pilotfish/internal/settings"
)

// Place is the location of a member in a request: in the body, in a header or in the path.
// In the file, a plain string is a pointer.
type Place struct {
	// Pointer is a JSON Pointer into the body (RFC 6901). All values on the way to the member
	// must be objects or null; otherwise the job is rejected. "none" means that no job has
	// the member.
	Pointer string `yaml:"pointer,omitempty"`
	// Header is the name of a request header.
	Header string `yaml:"header,omitempty"`
	// Path is a pattern for the prefix of the request's path, such as /tenants/*/jobs. The
	// value is the path segment that matches the *. The values of several * are joined by
	// slashes. If the path does not match, the member is absent.
	Path string `yaml:"path,omitempty"`
	// Blocks splits the value into blocks of this size, for data with a shared prefix such as
	// prompts to a language model. Jobs whose texts have the same prefix share its blocks. The
	// first block identifies the project. The value can be of any JSON type; its JSON text
	// is split, for a string without the quotation marks. Only the first 256 blocks count.
	// 0 does not split: the value is a string, a number, or an array of several projects.
	// Only the project can have blocks.
	Blocks settings.Size `yaml:"blocks,omitempty"`
}

// Places are the locations of the parts of one member.
type Places []Place

// UnmarshalYAML reads a section, or a string that is the pointer.
func (p *Place) UnmarshalYAML(decode func(any) error) error {
	type section Place
	*p = Place{}
	if decode(&p.Pointer) == nil {
		return nil
	}
	return decode((*section)(p))
}

// MarshalYAML writes the form that UnmarshalYAML reads.
func (p Place) MarshalYAML() (any, error) {
	if p.alone() {
		return p.Pointer, nil
	}
	type section Place
	return section(p), nil
}

// alone reports whether only the pointer is set.
func (p Place) alone() bool { return p == Place{Pointer: p.Pointer} }

// UnmarshalYAML reads a list of places, or a single place.
func (p *Places) UnmarshalYAML(decode func(any) error) error {
	type list Places
	if decode(new([]any)) == nil {
		return decode((*list)(p))
	}
	*p = make(Places, 1)
	return decode(&(*p)[0])
}

// title returns the name of the place for error messages.
func (p Place) title() string {
	switch {
	case p.Header != "":
		return "header " + p.Header
	case p.Path != "":
		return "path " + p.Path
	}
	return p.Pointer
}

// Upper bounds of places.
const (
	MaxPlaces   = 4        // places of a member
	maxBlock    = 64 << 10 // bytes of a block: that much of a body is always kept
	maxHeader   = 128      // bytes of a header name
	maxSegments = 16       // segments of a path pattern
	maxPath     = 8 << 10  // bytes of a request path; a longer path never matches
)

const (
	wild      = "*" // the pattern segment that captures a path segment
	separator = "/" // between the parts of a project
)

// check adds to f what is wrong with the place of member m.
func (p Place) check(f *settings.Faults, m member) {
	given := 0
	for _, text := range []string{p.Pointer, p.Header, p.Path} {
		if text != "" {
			given++
		}
	}
	if given > 1 {
		f.Add("", "set only one of pointer, header and path, not %d", given)
	}
	if p.Header != "" && (!isToken(p.Header) || len(p.Header) > maxHeader || strings.EqualFold(p.Header, "Host")) {
		f.Add("header", "%q is not the name of a header that pilotfish can read", p.Header)
	}
	names := strings.Split(p.Path, "/")
	valid := names[0] == "" && (m == prefetch || slices.Contains(names, wild)) && len(names) <= maxSegments+1 &&
		!strings.ContainsAny(p.Path, "?#%")
	if p.Path != "" && !valid {
		f.Add("path", "%q is not a pattern such as /tenants/*/jobs with at most %d segments", p.Path, maxSegments)
	}
	switch {
	case p.Blocks != 0 && m != project:
		f.Add("blocks", "only the project can have blocks, not the %v", m)
	case p.Blocks != 0:
		f.Within("blocks", int(p.Blocks), 1, maxBlock)
	}
}

// isToken reports whether a text is a valid header name (RFC 9110, 5.6.2).
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// nowhere is the pointer that turns a member off.
const nowhere = "none"

// inBody reports whether the place is in the body.
func (p Place) inBody() bool { return p.Header == "" && p.Path == "" && p.Pointer != nowhere }

// find returns the text at a place outside the body, or "" if it is absent. wrong is the reason why the text is invalid.
func (p Place) find(h Head) (text, wrong string) {
	if p.Pointer == nowhere {
		return "", ""
	}
	if p.Header != "" {
		switch lines := h.Header[textproto.CanonicalMIMEHeaderKey(p.Header)]; len(lines) {
		case 0:
			return "", ""
		case 1:
			return lines[0], ""
		}
		return "", "occurs more than once"
	}
	return p.inPath(h.Path), ""
}

// inPath returns the path segments that match the pattern's *, joined by slashes. It returns "true" if a pattern
// without * matches, and "" if the path does not match.
func (p Place) inPath(path string) string {
	if len(path) > maxPath {
		return ""
	}
	var found []string
	for pattern := range strings.SplitSeq(p.Path, "/") {
		var name string
		name, path, _ = strings.Cut(path, "/")
		switch {
		case pattern == wild && name != "":
			if plain, err := url.PathUnescape(name); err == nil {
				name = plain
			}
			found = append(found, name)
		case pattern != name:
			return ""
		}
	}
	if found == nil {
		return "true"
	}
	return strings.Join(found, separator)
}

// jsonOf converts a text from a header or path to the JSON value that a body would
// contain: a number if m expects one and the text is one, otherwise a string.
func jsonOf(m member, text string) (jsontext.Kind, []byte) {
	if m == queue || m == firstByte || m == stream || m == dataBytes {
		if v := jsontext.Value(text); v.Kind() == '0' && v.IsValid() {
			return '0', v
		}
	}
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil { // the text is not valid UTF-8
		quoted, _ = jsontext.AppendQuote(nil, strings.ToValidUTF8(text, "\uFFFD"))
	}
	return '"', quoted
}
