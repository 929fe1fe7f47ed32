// Package http1 reads HTTP/1.1 messages: message heads, with the order and case of their fields, and chunked
// bodies. It parses plain heads itself, in a fraction of net/http's time. net/http parses all other heads, so it
// decides what is valid.
package http1

import (
	"bytes"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Head holds what http.Request and http.Response do not keep of a received head.
type Head struct {
	// Reason is the reason phrase of a response.
	Reason string
	// Fields are the fields in their order.
	Fields []Field
	// Host is the value of the Host header, if HasHost. http.Request does not keep it if the target is absolute.
	Host    string
	HasHost bool
	// Memory is the memory of the head, in bytes.
	Memory int64
	// Plain is set for a head that was not parsed by net/http: all its field names are tokens.
	Plain bool
}

// LineCost is the memory of a header line in addition to its bytes.
const LineCost = 128

// memory returns the memory of a head with this number of lines, in bytes.
func memory(text string, lines int) int64 { return int64(len(text) + LineCost*lines) }

// Has reports whether the head has a field with this key.
func (h *Head) Has(key string) bool { return count(h.Fields, key) > 0 }

// Field is a header field.
type Field struct {
	Name string // as received
	Key  string // Name in canonical form
	nth  int    // number of earlier fields with the same key

	value [1]string // set for a plain head
}

// manyFields is the number of fields above which Append counts them in a map. Up to this number, it compares each
// field with every other field.
const manyFields = 128

// Size returns the size of the head at the start of p, including its final empty line. It is 0 if the head is
// incomplete.
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

// split returns the fields of a head, and its text without the fields whose key is drop.
func split(text, drop string) (fields []Field, rest string) {
	var kept strings.Builder
	dropped, seen := false, map[string]int{}
	for i, line := range slices.Collect(strings.Lines(text)) {
		if name, _, found := strings.Cut(line, ":"); i > 0 && found && line[0] != ' ' && line[0] != '\t' {
			key := textproto.CanonicalMIMEHeaderKey(name)
			dropped = key == drop
			fields = append(fields, Field{Name: name, Key: key, nth: seen[key]})
			seen[key]++
		} else if strings.TrimRight(line, "\r\n") == "" {
			dropped = false
		}
		if !dropped {
			kept.WriteString(line)
		}
	}
	return fields, kept.String()
}

// count returns the number of fields with a key.
func count(fields []Field, key string) (n int) {
	for i := range fields {
		if fields[i].Key == key {
			n++
		}
	}
	return n
}

// Append appends the fields of h to b, the received fields first, in their order and case. A field in own replaces
// the fields of h with its key; without a value it only removes them. Fields with invalid names are omitted, and line
// ends in values become spaces; invalid is the key of the last such field.
func Append(b []byte, h http.Header, received []Field, own ...[2]string) (out []byte, invalid string) {
	var many map[string]int
	if len(received) > manyFields {
		many = map[string]int{}
		for i := range received {
			many[received[i].Key]++
		}
	}
	times := func(key string) int {
		if many != nil {
			return many[key]
		}
		return count(received, key)
	}
	for _, o := range own {
		if o[1] != "" && times(o[0]) == 0 {
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
		for _, v := range values[min(len(values), times(key)):] {
			b, invalid = appendField(b, key, key, v, invalid)
		}
	}
	return b, invalid
}

// oneLine prevents header injection: a line end in a value would start another field.
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
