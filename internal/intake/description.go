package intake

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Description is the result of reading a job's members from its request.
type Description struct {
	Facts   Facts
	Reading Reading
	// Unread is the reason why not all members could be read; "" if all were read.
	Unread string
}

// Head is the part of a request before its body.
type Head struct {
	Method string
	// Path is the escaped path, without the query.
	Path   string
	Header http.Header
}

// Describe reads a job's members from its request. body is the whole body or its first
// bytes. A body of type application/json must be a valid job; otherwise Describe returns an error. A body of a
// type that ends in +json can be something else, such as an array: only an object with an invalid member is an
// error then.
func (r *Reader) Describe(h Head, body []byte, whole bool) (d Description, err error) {
	media := mediaType(h.Header)
	body = bytes.TrimPrefix(body, byteOrderMark)
	isJSON := media == "" || media == "application/json"
	if r.root.leaves > 0 {
		d.Unread = unreadable(h, media, isJSON, body)
	}
	if d.Unread == "" {
		d.Facts, d.Reading, err = r.read(h, body, whole)
		if d.Reading == Partly {
			d.Unread = "its body is not kept, and the first bytes lack the project or the priority"
		}
		_, ofHead := errors.AsType[headError](err)
		wrong, ofBody := errors.AsType[*bodyError](err)
		if err == nil || ofHead || isJSON || strings.HasSuffix(media, "+json") && ofBody && wrong.valid {
			return d, err
		}
		d.Unread = fmt.Sprintf("its Content-Type is %.80q, and its body is not a job: %v", media, err)
	}
	d.Facts, d.Reading, err = r.read(h, nil, false)
	if d.Reading == NoProject || d.Reading == Full {
		d.Unread = "" // the body is not needed
	}
	return d, err
}

// byteOrderMark can precede a JSON text (RFC 8259, 8.1). It is skipped here but forwarded; byte offsets in
// error messages do not count it.
var byteOrderMark = []byte("\xEF\xBB\xBF")

// unreadable returns the reason why members cannot be read from the body, or "".
func unreadable(h Head, media string, isJSON bool, body []byte) string {
	encoding := h.Header.Get("Content-Encoding")
	switch {
	case h.Method != http.MethodPost:
		return "its method is not POST"
	case len(body) == 0:
		return "it has no body"
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return fmt.Sprintf("its body is encoded: %.40q", encoding)
	case !isJSON && !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")):
		return fmt.Sprintf("its body does not begin with {, and its Content-Type is %.80q", media)
	}
	return ""
}

// mediaType returns the Content-Type without parameters, in lower case.
func mediaType(h http.Header) string {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(media))
}
