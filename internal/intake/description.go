package intake

import (
	"bytes"
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

// Describe reads what a request says of its job. body is the whole body or its
// beginning. A body that claims to be JSON and is no job is an error.
func (r *Reader) Describe(method string, header http.Header, body []byte, whole bool) (d Description, err error) {
	encoding, media := header.Get("Content-Encoding"), mediaType(header)
	isJSON := media == "" || media == "application/json" || strings.HasSuffix(media, "+json")
	switch {
	case method != http.MethodPost:
		return unread("it is no POST")
	case len(body) == 0:
		return unread("it has no body")
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return unread("its body is encoded: %.40q", encoding)
	case !isJSON && !r.anyType:
		return unread("job.read is json, and its Content-Type %.80q", media)
	case !isJSON && !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")):
		return unread("its body does not begin with {, and its Content-Type is %.80q", media)
	}
	d.Facts, d.Reading, err = r.read(body, whole)
	switch {
	case err != nil && !isJSON:
		return unread("its Content-Type is %.80q, and its body no job: %v", media, err)
	case d.Reading == Partly:
		d.Unread = "its body is not kept, and the beginning lacks the project or the priority"
	}
	return d, err
}

func unread(format string, args ...any) (Description, error) {
	return Description{Unread: fmt.Sprintf(format, args...)}, nil
}

// mediaType is the Content-Type without parameters, in lower case.
func mediaType(h http.Header) string {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(media))
}
