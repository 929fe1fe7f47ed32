// Package http1 reads HTTP/1.1 messages: heads, with the order and the spelling of their fields, and bodies
// in chunks. It parses plain heads itself, for a fraction of what net/http takes. All others are net/http's to
// parse, so that net/http decides what is valid.
package http1

import (
	"bytes"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Head is how a head was received, beyond what http.Request and http.Response keep.
type Head struct {
	// Reason is the reason phrase of a response.
	Reason string
	// Fields are the fields in their order; nil of a head with more than maxFields.
	Fields []Field
}

// Has reports whether there is a field with a key.
func (h *Head) Has(key string) bool { return count(h.Fields, key) > 0 }

// Field is a header field.
type Field struct {
	Name string // as received
	Key  string // Name in canonical form
	nth  int    // how many fields before it have the same key

	value [1]string // of a plain head
}

// maxFields bounds the fields whose order is kept: Append compares each with each.
const maxFields = 128

// Size returns the size of the head at the beginning of p, with the empty line that ends it; 0 if its end has
// not been received.
func Size(p []byte) int {
	for i := 0; ; {
		n := bytes.IndexByte(p[i:], '\n')
		if n < 0 {
			return 0
		}
		line := p[i : i+n]
		if i += n + 1; len(line) == 0 || len(line) == 1 && line[0] == '\r' {
			return i
		}
	}
}

// split returns the fields of a head that net/http has accepted, and the text without those that have the key drop.
func split(text, drop string) (fields []Field, rest string) {
	var kept strings.Builder
	dropped := false
	for i, line := range slices.Collect(strings.Lines(text)) {
		if name, _, found := strings.Cut(line, ":"); i > 0 && found && line[0] != ' ' && line[0] != '\t' {
			key := textproto.CanonicalMIMEHeaderKey(name)
			dropped = key == drop
			if len(fields) <= maxFields {
				fields = append(fields, Field{Name: name, Key: key})
			}
		} else if strings.TrimRight(line, "\r\n") == "" {
			dropped = false
		}
		if !dropped {
			kept.WriteString(line)
		}
	}
	if len(fields) > maxFields {
		return nil, kept.String()
	}
	for i, f := range fields {
		fields[i].nth = count(fields[:i], f.Key)
	}
	return fields, kept.String()
}

// count returns how many fields have a key.
func count(fields []Field, key string) (n int) {
	for i := range fields {
		if fields[i].Key == key {
			n++
		}
	}
	return n
}

// Append appends the fields of h to b: those that were received first, in their order and with their spelling.
// own are fields that replace those of h with their keys; one without a value is left out. Names that are not
// valid are left out, and line ends in values become spaces: invalid names the last such field.
func Append(b []byte, h http.Header, received []Field, own ...[2]string) (out []byte, invalid string) {
	for _, o := range own {
		if o[1] != "" && count(received, o[0]) == 0 {
			b, invalid = appendField(b, o[0], o[0], o[1], invalid)
		}
	}
	replaced := func(key string) int {
		return slices.IndexFunc(own, func(o [2]string) bool { return o[0] == key })
	}
	for i := range received {
		f := &received[i]
		if o := replaced(f.Key); o >= 0 {
			if f.nth == 0 && own[o][1] != "" {
				b, invalid = appendField(b, f.Key, f.Name, own[o][1], invalid)
			}
		} else if values := h[f.Key]; f.nth < len(values) {
			b, invalid = appendField(b, f.Key, f.Name, values[f.nth], invalid)
		}
	}
	for key, values := range h {
		if replaced(key) >= 0 {
			continue
		}
		for _, v := range values[min(len(values), count(received, key)):] {
			b, invalid = appendField(b, key, key, v, invalid)
		}
	}
	return b, invalid
}

// oneLine keeps a value from becoming two fields.
var oneLine = strings.NewReplacer("\n", " ", "\r", " ")

func appendField(b []byte, key, name, value, invalid string) ([]byte, string) {
	if !httpguts.ValidHeaderFieldName(key) {
		return b, key
	}
	if !httpguts.ValidHeaderFieldValue(value) {
		value, invalid = oneLine.Replace(value), key
	}
	b = append(b, name...)
	b = append(b, ": "...)
	b = append(b, textproto.TrimString(value)...)
	return append(b, "\r\n"...), invalid
}
