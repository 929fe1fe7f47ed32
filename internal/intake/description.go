package intake

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Description is what a request says of its job, as far as it could be read.
type Description struct {
	Facts   Facts
	Reading Reading
	// Unread is why it could not all be read; "" if it could.
	Unread string
}

// Head is what a request says before its body.
type Head struct {
	Method string
	// Path is the path as it came, without a query.
	Path   string
	Header http.Header
}

// Describe reads what a request says of its job. body is the whole body or its
// beginning. A body that claims to be JSON and is no job is an error. Of many types that end in +json a document
// is an array or several objects: only an object with an invalid member is an error there.
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
			d.Unread = "its body is not kept, and the beginning lacks the project or the priority"
		}
		_, ofHead := errors.AsType[headError](err)
		wrong, ofBody := errors.AsType[*bodyError](err)
		if err == nil || ofHead || isJSON || strings.HasSuffix(media, "+json") && ofBody && wrong.valid {
			return d, err
		}
		d.Unread = fmt.Sprintf("its Content-Type is %.80q, and its body no job: %v", media, err)
	}
	d.Facts, d.Reading, err = r.read(h, nil, false)
	if d.Reading == NoProject || d.Reading == Full {
		d.Unread = "" // the body is not needed
	}
	return d, err
}

// byteOrderMark may precede a JSON text (RFC 8259, 8.1). It is forwarded, and not part of the job: offsets in
// messages count from behind it.
var byteOrderMark = []byte("\xEF\xBB\xBF")

// unreadable says why the body cannot be read; "" if it may be.
func unreadable(h Head, media string, isJSON bool, body []byte) string {
	encoding := h.Header.Get("Content-Encoding")
	switch {
	case h.Method != http.MethodPost:
		return "it is no POST"
	case len(body) == 0:
		return "it has no body"
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return fmt.Sprintf("its body is encoded: %.40q", encoding)
	case !isJSON && !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")):
		return fmt.Sprintf("its body does not begin with {, and its Content-Type is %.80q", media)
	}
	return ""
}

// mediaType is the Content-Type without parameters, in lower case.
func mediaType(h http.Header) string {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(media))
}
