package intake

import (
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/pilotfish/internal/settings"
)

// Place is where a member of a job is: in the body, in a header or in the path of the
// request. A text alone is a pointer.
type Place struct {
	// Pointer is a JSON Pointer into the body (RFC 6901). It leads through objects
	// only: a job with anything else there, but null, is refused. "none" is nowhere:
	// no job has the member.
	Pointer string `yaml:"pointer,omitempty"`
	// Header is the name of a request header.
	Header string `yaml:"header,omitempty"`
	// Path is a pattern for the beginning of the request's path, such as
	// /tenants/*/jobs: the member is what stands in the place of the *. With several,
	// their texts are joined by a slash. In a path that does not match, it is absent.
	Path string `yaml:"path,omitempty"`
	// Blocks reads the value as a text in blocks of that size, each of which goes on from all before
	// it. So jobs that begin alike share the blocks up to where they part, such as prompts to a
	// language model; the first block names the project. The bytes are those of the JSON text,
	// quotation marks of a string aside; the value may be of any type. Of 256 blocks and more,
	// only those count. 0 takes the value as it is: text, a number, or an array of several
	// projects. Only the project can have blocks.
	Blocks settings.Size `yaml:"blocks,omitempty"`
}

// Places are where the parts of one member are.
type Places []Place

// UnmarshalYAML reads a section, or a text that is the pointer.
func (p *Place) UnmarshalYAML(decode func(any) error) error {
	type section Place
	*p = Place{}
	if decode(&p.Pointer) == nil {
		return nil
	}
	return decode((*section)(p))
}

// MarshalYAML writes what UnmarshalYAML reads.
func (p Place) MarshalYAML() (any, error) {
	if p.alone() {
		return p.Pointer, nil
	}
	type section Place
	return section(p), nil
}

// alone says whether the place is a pointer and nothing else.
func (p Place) alone() bool { return p == Place{Pointer: p.Pointer} }

// UnmarshalYAML reads a list, or its only element.
func (p *Places) UnmarshalYAML(decode func(any) error) error {
	type list Places
	if decode(new([]any)) == nil {
		return decode((*list)(p))
	}
	*p = make(Places, 1)
	return decode(&(*p)[0])
}

// title names the place in faults of a job.
func (p Place) title() string {
	switch {
	case p.Header != "":
		return "header " + p.Header
	case p.Path != "":
		return "path " + p.Path
	}
	return p.Pointer
}

// Bounds of places.
const (
	maxPlaces   = 4        // of a project
	maxBlock    = 64 << 10 // bytes: as much of a body is always kept
	maxHeader   = 128      // bytes of a header's name
	maxSegments = 16       // of a path pattern
	maxPath     = 8 << 10  // bytes of a path that is looked at
)

const (
	wild      = "*" // the segment of a path that is taken
	separator = "/" // between the parts of a project
)

// check reports what is wrong with the place by itself.
func (p Place) check(f *settings.Faults, m member) {
	given := 0
	for _, text := range []string{p.Pointer, p.Header, p.Path} {
		if text != "" {
			given++
		}
	}
	if given > 1 {
		f.Add("", "a place is one of pointer, header and path, not %d of them", given)
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
		f.Add("blocks", "only the project can have blocks: the %v must be read whole", m)
	case p.Blocks != 0:
		f.Within("blocks", int(p.Blocks), 1, maxBlock)
	}
}

// isToken says whether a text can be the name of a header (RFC 9110, 5.6.2).
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// nowhere is the pointer of a member that no job has.
const nowhere = "none"

// inBody says whether the place is a member of the body.
func (p Place) inBody() bool { return p.Header == "" && p.Path == "" && p.Pointer != nowhere }

// find returns the text at a place; "" is absent.
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
		return "", "is there twice"
	}
	return p.inPath(h.Path), ""
}

// inPath is what stands in a path where the pattern has *; "true" where a pattern without * matches; "" where
// the path does not match.
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

// jsonOf is a text as the value that a body would have: a number where it is one
// and a number is wanted, else a string.
func jsonOf(m member, text string) (jsontext.Kind, []byte) {
	if m == queue || m == firstByte || m == stream || m == dataBytes {
		if v := jsontext.Value(text); v.Kind() == '0' && v.IsValid() {
			return '0', v
		}
	}
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil { // it is not UTF-8
		quoted, _ = jsontext.AppendQuote(nil, strings.ToValidUTF8(text, "\uFFFD"))
	}
	return '"', quoted
}
